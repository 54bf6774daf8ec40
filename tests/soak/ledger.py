"""What should have come, what came, and what that makes: lost, repeated, changed."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from tests.soak.dataset import rows

_TOLD = 5  # changes that are told in words

Indices = tuple[int, ...]


class Verdict(NamedTuple):
    """Samples that never came; that came too often, or should not have; that had other values, or came elsewhere."""

    lost: int
    repeated: int
    changed: int


class Ledger:
    """The books of one life. A batch is known by the indices of its samples, in order."""

    def __init__(self, *, in_order: bool) -> None:
        self._in_order = in_order
        self._expected: dict[int, list[Indices]] = defaultdict(list)  # epoch -> batches
        self._noise: dict[tuple[int, int], float] = {}  # (epoch, index) -> what its sample draws, where known
        self._got: list[tuple[int, Indices]] = []
        self._changed = 0
        self.details: list[str] = []  # of the first changes, in words

    def expect(self, epoch: int, indices: Indices) -> None:
        self._expected[epoch].append(indices)

    def expect_batch(self, epoch: int, batch: Any) -> None:
        """With the random numbers that belong to it."""
        self.expect(epoch, indices_of(batch))
        self.expect_noise(epoch, batch)

    def expect_noise(self, epoch: int, batch: Any) -> None:
        """The random numbers alone."""
        for index, noise in zip(indices_of(batch), np.atleast_1d(batch["noise"]).tolist(), strict=True):
            self._noise[epoch, index] = noise

    def note(self, epoch: int, batch: Any) -> int:
        """A batch has come. Gives the number of its samples."""
        indices = indices_of(batch)
        self._got.append((epoch, indices))
        self.check(epoch, batch, "when it came")
        return len(indices)

    def check(self, epoch: int, batch: Any, when: str = "when it was let go") -> None:
        """Compares its values, now or later again: a batch that is held must not change."""
        indices, row, noise = (np.atleast_1d(batch[key]) for key in ("index", "row", "noise"))
        expected_row = rows(indices, row.shape[-1])
        expected_noise = [self._noise.get((epoch, index), drawn) for index, drawn in zip(indices, noise, strict=True)]
        wrong_row = (np.atleast_2d(row) != expected_row).any(axis=1)
        wrong = wrong_row | (noise != expected_noise)
        if wrong.any():
            self._changed += int(wrong.sum())
            what = "rows" if wrong_row.any() else "random numbers"
            self._tell(f"epoch {epoch}, {what} of {indices[wrong]} in the batch {indices} {when}")

    @property
    def mark(self) -> int:
        """For ``rewind``."""
        return len(self._got)

    def rewind(self, mark: int) -> None:
        """What came since that mark counts as never delivered: the consumer goes back to an older state."""
        del self._got[mark:]

    def verdict(self) -> Verdict:
        got: dict[int, list[Indices]] = defaultdict(list)
        for epoch, indices in self._got:
            got[epoch].append(indices)
        verdicts = [self._of_epoch(epoch, got[epoch], self._expected[epoch]) for epoch in {*got, *self._expected}]
        lost, repeated, changed = map(sum, zip(*verdicts, strict=True)) if verdicts else (0, 0, 0)
        return Verdict(lost, repeated, changed + self._changed)

    def _of_epoch(self, epoch: int, got: list[Indices], expected: list[Indices]) -> Verdict:
        mine, theirs = (Counter(index for batch in batches for index in batch) for batches in (got, expected))
        if mine != theirs:
            lost, repeated = theirs - mine, mine - theirs
            self._tell(f"epoch {epoch}, lost {sorted(lost.elements())}, repeated {sorted(repeated.elements())}")
            return Verdict(lost.total(), repeated.total(), 0)
        if self._in_order:
            misplaced = [a for a, b in zip_longest(got, expected, fillvalue=()) if a != b]
        else:
            misplaced = list((Counter(got) - Counter(expected)).elements())
        if misplaced:
            self._tell(f"epoch {epoch}, batches that are other ones, or elsewhere: {misplaced}")
        return Verdict(0, 0, sum(map(len, misplaced)))

    def _tell(self, words: str) -> None:
        if len(self.details) < _TOLD:
            self.details.append(words)


def indices_of(batch: Any) -> Indices:
    return tuple(np.atleast_1d(batch["index"]).tolist())
