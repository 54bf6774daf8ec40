"""Samples that failed and were left out: counted, logged, written down, and not too many of them.

A quarantine file has one JSON object a line: ``index``, ``epoch``, ``error``, ``traceback``, and for ``stoker replay``
``seed`` (of the batch's random numbers) and ``dataset`` (how to make it, where that is known). Items of a stream and
chunk files, which cannot be made again by an index, have ``what`` instead of these two.

Secrets are redacted: in the arguments of the dataset, and in errors and tracebacks as far as they can be told.
"""

from __future__ import annotations

import errno
import json
import logging
import os
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, Literal

from stoker.errors import TooManyErrors
from stoker.plan import Batch, Numbering, Plan
from stoker.private_files import open_to_append
from stoker.redaction import redacted_text
from stoker.workers import Skipped

OnError = Literal["raise", "skip", "quarantine", "replace"]

QUARANTINE_FILE = "quarantine.jsonl"

_CHOICES = ("raise", "skip", "quarantine", "replace")
_ROUNDING = 1e-6  # of a sample: 0.29 * 100 is 28.999999999999996
_LOGGED = 20  # skipped samples that get a line of their own; then only every hundredth does

log = logging.getLogger("stoker")


@dataclass(frozen=True)
class ErrorPolicy:
    """What becomes of samples that fail.

    Args:
        on_error: "raise", "skip", "quarantine" or "replace".
        max_errors: How many may fail in an epoch: a count, a share of its samples, or None: all but one.
        quarantine: The file to append to; with "replace", None: no file.
    """

    on_error: OnError = "raise"
    max_errors: int | float | None = None
    quarantine: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        if self.on_error not in _CHOICES:
            raise ValueError(f"on_error={self.on_error!r}: pass one of {', '.join(map(repr, _CHOICES))}")
        if self.max_errors is not None:
            self._check_max_errors(self.max_errors)
        if self.quarantine is not None:
            if self.on_error not in ("quarantine", "replace"):
                raise ValueError(f'quarantine={self.quarantine!r} needs on_error="quarantine" or "replace"')
            os.fspath(self.quarantine)

    @property
    def leaves_out(self) -> bool:
        """Or replaces them."""
        return self.on_error != "raise"

    @property
    def replaces(self) -> bool:
        return self.on_error == "replace"

    @property
    def file(self) -> str | None:
        """Where to write failures down, as an absolute path; None: nowhere."""
        if self.on_error != "quarantine" and self.quarantine is None:
            return None
        return os.path.abspath(self.quarantine or QUARANTINE_FILE)

    def limit(self, plan: Plan | Numbering, epoch: int = 0) -> int:
        """How many may fail in an epoch."""
        share = plan.share_in(epoch)
        samples = plan.positions if share is None else share
        if self.max_errors is None:
            return samples - 1
        if isinstance(self.max_errors, float):
            return int(self.max_errors * samples + _ROUNDING)
        return self.max_errors

    def _check_max_errors(self, limit: Any) -> None:
        if self.on_error == "raise":
            raise ValueError(f'max_errors={limit!r} needs on_error="skip", "quarantine" or "replace"')
        is_count = isinstance(limit, int) and not isinstance(limit, bool) and limit >= 0
        if not is_count and not (isinstance(limit, float) and 0 <= limit <= 1):
            raise ValueError(f"max_errors={limit!r}: pass a number of samples, or a share of them from 0.0 to 1.0")


@dataclass(frozen=True)
class Reference:
    """How samples that failed can be made again.

    Args:
        dataset: How to make it, as JSON can hold it.
        seed: What random numbers were seeded with before a sample of a batch was made.
        secrets: Strings that are to be redacted wherever they stand.
    """

    dataset: dict[str, Any]
    seed: Callable[[Plan, Batch, int], int]
    secrets: Collection[str] = field(default=(), repr=False)

    def of(self, plan: Plan, batch: Batch, sample: int) -> dict[str, Any]:
        return {"seed": self.seed(plan, batch, sample), "dataset": self.dataset}


class Failures:
    """Takes note of what was left out of each batch.

    Args:
        policy: What the user wants.
        reference: For the quarantine file; None: what is left out has no index to make it again by.
    """

    def __init__(self, policy: ErrorPolicy, reference: Reference | None = None) -> None:
        self._policy = policy
        self._file = policy.file  # now, since the program may change its folder
        self._reference = reference
        self._secrets = reference.secrets if reference is not None else ()
        self.replaces = policy.replaces
        self._done = "replaced" if policy.replaces else "skipped"  # with a sample that failed
        self._logged = 0
        self._unwritable = False

    def note(
        self, skipped: tuple[Skipped, ...], batch: Batch, plan: Plan | Numbering, before: int, what: str = "sample"
    ) -> None:
        """These were left out of a batch, after ``before`` others in its epoch.

        Args:
            skipped: Which, and why.
            batch: Of which.
            plan: Its ``share_in`` tells how many there are in an epoch.
            before: How many were left out before them.
            what: What one of them is: "sample", "item", "file", or "part" of a file.

        Raises:
            TooManyErrors: With these, more have failed than may.
        """
        skipped = tuple(self._redacted(one) for one in skipped)
        for one in skipped:
            self._log(one, batch, what)
        if self._file is not None:
            self._write(self._file, skipped, batch, plan, what)
        failed, limit = before + len(skipped), self._policy.limit(plan, batch.epoch)
        if failed > limit:
            raise self._too_many(failed, limit, skipped[-1], batch, plan.share_in(batch.epoch), what)

    def _redacted(self, one: Skipped) -> Skipped:
        error, told = (redacted_text(text, self._secrets) for text in (one.error, one.traceback))
        return one._replace(error=error, traceback=told)

    def _log(self, one: Skipped, batch: Batch, what: str) -> None:
        self._logged += 1
        if self._logged <= _LOGGED or self._logged % 100 == 0:
            log.warning("%s %s %d of epoch %d: %s", self._done, what, one.sample, batch.epoch, one.error)
        if self._logged == _LOGGED:
            log.warning(
                "%d %ss were %s so far: from here on, only every hundredth is logged", _LOGGED, what, self._done
            )

    def _write(self, file: str, skipped: tuple[Skipped, ...], batch: Batch, plan: Plan | Numbering, what: str) -> None:
        """Appends whole lines in one go, so that several consumers may share a file."""
        lines = []
        for sample, error, told in skipped:
            known: dict[str, Any] = {"what": what}
            if self._reference is not None and isinstance(plan, Plan):
                known = self._reference.of(plan, batch, sample)
            failed = {"index": sample, "epoch": batch.epoch, "error": error, "traceback": told}
            lines.append(json.dumps(failed | known) + "\n")
        try:
            _append(file, "".join(lines).encode())
        except OSError as error:
            if not self._unwritable:  # once is enough; as text, since a handler that kept it would keep the batch
                why = f"{file}: {error.strerror}"
                log.error("cannot write to the quarantine file %s. Samples are %s all the same.", why, self._done)
            self._unwritable = True

    def _too_many(
        self, failed: int, limit: int, last: Skipped, batch: Batch, share: int | None, what: str
    ) -> TooManyErrors:
        of_all, culprit = f"of {share} {what}s of epoch {batch.epoch}", "the dataset"
        if share is None:
            of_all, culprit = f"{what}s", "the work"
        allowed = f"max_errors={self._policy.max_errors!r}" if self._policy.max_errors is not None else "all but one"
        error = TooManyErrors(
            f"{failed} {of_all} failed; {limit} may ({allowed}). "
            f"The last one was {last.sample}: {last.error}. Mend {culprit}, or raise max_errors"
        )
        if last.traceback:
            error.add_note(f"stoker: how {what} {last.sample} failed:\n{last.traceback}")
        return error


def _append(file: str, text: bytes) -> None:
    fd = open_to_append(file)
    try:
        if os.write(fd, text) < len(text):
            raise OSError(errno.ENOSPC, "not all of it could be written")
    finally:
        os.close(fd)
