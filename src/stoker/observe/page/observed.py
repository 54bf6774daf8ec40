"""What can be told of a loader or stream by those who do not hold it: the page, and whoever reports after its end."""

from __future__ import annotations

import itertools
import os
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any, Protocol

from stoker.engine import Usage
from stoker.observe.meter import Meter
from stoker.observe.page.report import write_report
from stoker.observe.page.snapshot import BARS, Snapshot, verdict
from stoker.observe.stats import Stats

_JUDGED_EVERY_S = 1.5  # a diagnosis takes as long as all the rest together

_numbers = itertools.count()


@dataclass(frozen=True)
class Moment:
    """How it is with a session at a moment. ``phase``, ``epoch``, ``shard`` and ``pids``: see ``Snapshot``."""

    phase: str = "not started"
    epoch: int = 0
    shard: tuple[int, int] = (0, 1)
    pids: tuple[int, ...] = ()
    usage: Usage | None = None


class Seen(Protocol):
    """A session."""

    def moment(self) -> Moment:
        """From any thread."""


class Observed:
    """Keeps no worker and no memory of batches alive: once the session is gone, it tells what it was like at the end.

    Args:
        title: What it is, for the user.
        backend: Where its workers live.
        meter: Measures it.
        session: That is observed.
    """

    def __init__(self, title: str, backend: str, meter: Meter, session: Seen) -> None:
        self.key = f"{os.getpid()}-{next(_numbers)}"
        self.title = title
        self._backend, self._meter = backend, meter
        self._session = weakref.ref(session)
        self._last = Moment()
        self._adapt: Callable[[Stats], Stats] | None = None
        self._epoch: int | None = None
        self._shard: tuple[int, int] | None = None
        self._verdict: dict[str, Any] = {}
        self._judged = -_JUDGED_EVERY_S

    def describe(
        self, title: str, adapt: Callable[[Stats], Stats], *, epoch: int = 0, shard: tuple[int, int] = (0, 1)
    ) -> None:
        """Tells all of it in the words of a loader whose batches the stream makes.

        Args:
            title: What that is, for the user.
            adapt: Turns figures of the stream into the loader's.
            epoch: That runs.
            shard: Which consumer the loader is, and of how many.
        """
        self.title, self._adapt, self._epoch, self._shard = title, adapt, epoch, shard

    @property
    def waited(self) -> float:
        """Seconds for which the consumer was blocked so far. Costs nothing."""
        return self._meter.waited

    def snapshot(self, most: int | None = None) -> Snapshot:
        """With so many of the last batches, or all that are known. From any thread."""
        stats, last, rows = self.stats(), self._last, self._meter.recent(most)
        epoch = last.epoch if self._epoch is None else self._epoch
        shard = self._shard or last.shard
        return Snapshot(self.key, self.title, self._backend, last.phase, epoch, shard, last.pids, stats, rows)

    def stats(self) -> Stats:
        """The figures so far. From any thread."""
        self.look()
        usage, pids = self._last.usage, self._last.pids
        stats = self._meter.stats(pids=pids) if usage is None else self._meter.stats(usage, pids)
        return stats if self._adapt is None else self._adapt(stats)

    def live(self) -> dict[str, Any]:
        """What a page shows that is looked at three times a second: at little cost, and so with a diagnosis that may be
        some seconds old. From any thread."""
        snapshot = self.snapshot(BARS)
        if monotonic() - self._judged > _JUDGED_EVERY_S:
            self._verdict, self._judged = verdict(snapshot.stats), monotonic()
        return snapshot.to_dict(self._verdict)

    def report(self, path: str | os.PathLike[str] | None = None) -> None:
        """Prints where the time went, or writes it into an HTML file.

        Args:
            path: The file, which needs no network to be looked at. One that is there is replaced.

        Raises:
            OSError: It cannot be written.
        """
        if path is None:
            self.stats().report()
        else:
            write_report(path, [self.snapshot()])

    def look(self) -> None:
        """How it is now, as long as there is anything to look at."""
        session = self._session()
        if session is not None:
            now = session.moment()
            self._last = now
        else:
            self._last = Moment("closed", self._last.epoch, self._last.shard)
