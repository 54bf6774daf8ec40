"""What should have come, what came, and what that makes: lost, repeated, changed."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any, NamedTuple

import numpy as np

from tests.soak.dataset import rows

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

    def expect(self, epoch: int, indices: Indices) -> None:
        self._expected[epoch].append(indices)

    def expect_batch(self, epoch: int, batch: Any) -> None:
        """With the random numbers that belong to it."""
        indices = indices_of(batch)
        self.expect(epoch, indices)
        for index, noise in zip(indices, np.atleast_1d(batch["noise"]).tolist(), strict=True):
            self._noise[epoch, index] = noise

    def note(self, epoch: int, batch: Any) -> int:
        """A batch has come. Gives the number of its samples."""
        indices = indices_of(batch)
        self._got.append((epoch, indices))
        self.check(epoch, batch)
        return len(indices)

    def check(self, epoch: int, batch: Any) -> None:
        """Compares its values, now or later again: a batch that is held must not change."""
        indices = np.atleast_1d(batch["index"])
        row = np.atleast_2d(batch["row"])
        wrong = (row != rows(indices, row.shape[1])).any(axis=1)
        for place, noise in enumerate(np.atleast_1d(batch["noise"]).tolist()):
            wrong[place] |= noise != self._noise.get((epoch, int(indices[place])), noise)
        self._changed += int(wrong.sum())

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
        verdicts = [self._of_epoch(got[epoch], self._expected[epoch]) for epoch in {*got, *self._expected}]
        lost, repeated, changed = map(sum, zip(*verdicts, strict=True)) if verdicts else (0, 0, 0)
        return Verdict(lost, repeated, changed + self._changed)

    def _of_epoch(self, got: list[Indices], expected: list[Indices]) -> Verdict:
        mine, theirs = (Counter(index for batch in batches for index in batch) for batches in (got, expected))
        if mine != theirs:
            return Verdict((theirs - mine).total(), (mine - theirs).total(), 0)
        if self._in_order:
            misplaced = [a for a, b in zip(got, expected, strict=False) if a != b] or got[len(expected) :]
        else:
            misplaced = list((Counter(got) - Counter(expected)).elements())
        return Verdict(0, 0, sum(map(len, misplaced)))


def indices_of(batch: Any) -> Indices:
    return tuple(np.atleast_1d(batch["index"]).tolist())
