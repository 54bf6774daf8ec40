"""The order of an epoch in which each sample is used several times: ``Rotation``.

The samples that rotate at the same time are a block. A block is gone through `times` times, each pass in an order of
its own, so a sample comes once a pass; then the next block begins. All of it is arithmetic, like any other order.
"""

from collections.abc import Iterator
from itertools import groupby

import numpy as np

from stoker.plan.order import Order
from stoker.plan.permutation import Permutation, Positions, derive

_SMALL = 4  # samples; so small a block is worked out as a list, in which repeats are avoided one by one


class Rotated:
    """The uses [first, first + uses) out of `times` uses of each position of `order`: one shard's share.

    Its samples are numbered from 0, in the order in which they are made. The first and the last may be shared with the
    shards beside this one, and then have fewer than `times` uses here.

    Args:
        order: Of the samples, over all shards.
        span: First use and number of uses, where uses k * times up to (k + 1) * times are those of position k.
        times: Uses of each sample.
        size: Samples that rotate at the same time, at most.
        key: What the orders of the passes follow from; None: each pass is in the order of the samples.
    """

    __slots__ = ("_base", "_blocks", "_first", "_key", "_last", "_numbers", "_order", "_stop", "_times", "count")

    def __init__(self, order: Order, span: tuple[int, int], times: int, size: int, key: int | None) -> None:
        self._order, self._times, self._key = order, times, key
        self._first, self._stop = span[0], span[0] + span[1]
        self._base = self._first // times
        self.count = -(-self._stop // times) - self._base if span[1] else 0
        self._blocks = -(-self.count // size)  # as even as can be: a block of one sample can only repeat it
        self._last: tuple[int, _Block] | None = None
        self._numbers: tuple[int, int, Positions] = (0, 0, np.empty(0, dtype=np.int64))

    def indices(self, start: int, stop: int) -> list[int]:
        """The dataset indices of these uses."""
        found: list[int] = self._order.at(self.numbers(start, stop) + self._base).tolist()
        return found

    def numbers(self, start: int, stop: int) -> Positions:
        """The numbers of the samples of these uses."""
        # One attribute, replaced as a whole: threads may share an order.
        known = self._numbers
        if known[:2] != (start, stop):
            known = self._numbers = (start, stop, np.concatenate(list(self._parts(start, stop))))
        return known[2]

    def _parts(self, start: int, stop: int) -> Iterator[Positions]:
        yield np.empty(0, dtype=np.int64)
        while start < stop:
            block = self._block(self._block_of(start))
            upto = min(stop, block.stop)
            yield block.numbers(start, upto)
            start = upto

    def uses(self, numbers: Positions) -> Positions:
        """How often each of these samples is used here."""
        begin = (numbers + self._base) * self._times
        return np.minimum(begin + self._times, self._stop) - np.maximum(begin, self._first)

    def _block_of(self, use: int) -> int:
        number = use // self._times - self._base
        return ((number + 1) * self._blocks - 1) // self.count

    def _block(self, block: int) -> "_Block":
        last = self._last
        if last is None or last[0] != block:
            low, high = block * self.count // self._blocks, (block + 1) * self.count // self._blocks
            key = None if self._key is None else derive(self._key, self._base + low)
            start = max((low + self._base) * self._times, self._first)
            ends = self.uses(np.array([low, high - 1]))
            last = self._last = (block, _Block(range(low, high), start, ends, self._times, key))
        return last[1]


class _Block:
    """The samples that rotate together.

    Only the first and the last of all samples may have fewer uses than `times`: they are left out of later passes.
    """

    def __init__(self, samples: range, start: int, ends: Positions, times: int, key: int | None) -> None:
        self._samples, self._key = samples, key
        self._permutations: dict[int, Permutation] = {}  # of the last passes
        self._uses = int(ends[0]), int(ends[1])
        passes = np.arange(max(self._uses) if len(samples) <= 2 else times)
        self._members = len(samples) - (passes >= ends[0]) - ((passes >= ends[1]) & (len(samples) > 1))
        self._ends = np.cumsum(self._members)
        self.start, self.stop = start, start + int(self._ends[-1])
        self._listed = self._as_list() if len(samples) <= _SMALL else None

    def numbers(self, start: int, stop: int) -> Positions:
        begin, end = start - self.start, stop - self.start
        if self._listed is not None:
            return self._listed[begin:end]
        found = []
        turn = int(np.searchsorted(self._ends, begin, side="right"))
        while begin < end:
            upto = min(end, int(self._ends[turn]))
            found.append(self._part(turn, begin, upto))
            begin, turn = upto, turn + 1
        return np.concatenate(found)

    def _part(self, turn: int, begin: int, end: int) -> Positions:
        """What lies at these positions of the block, all of one pass."""
        offset = int(self._ends[turn] - self._members[turn])
        positions = np.arange(begin - offset, end - offset, dtype=np.int64)
        # Where a pass would begin with what the one before ended with, its first two change places.
        if begin - offset < 2 and turn and self._at(turn, 0) == self._at(turn - 1, int(self._members[turn - 1]) - 1):
            positions = np.where(positions < 2, 1 - positions, positions)
        return self._pass(turn, positions)

    def _at(self, turn: int, position: int) -> int:
        return int(self._pass(turn, np.array([position], dtype=np.int64))[0])

    def _pass(self, turn: int, positions: Positions) -> Positions:
        if self._key is not None:
            positions = self._permutation(self._key, turn)(positions)
        return positions + (self._samples.start + (turn >= self._uses[0]))

    def _permutation(self, key: int, turn: int) -> Permutation:
        kept = self._permutations  # replaced as a whole: threads may share a block
        known = kept.get(turn)
        if known is None:
            known = Permutation(int(self._members[turn]), derive(key, turn))
            self._permutations = {turn: known, **{last: kept[last] for last in list(kept)[:1]}}
        return known

    def _as_list(self) -> Positions:
        found: list[int] = []
        for turn, members in enumerate(self._members):
            order = self._pass(turn, np.arange(members, dtype=np.int64)).tolist()
            if found and order[0] == found[-1]:
                order = order[1:] + order[:1]
            found += order
        return np.array(found if self._key is None else _spread(found), dtype=np.int64)


def _spread(uses: list[int]) -> list[int]:
    """Moves each use that follows one of the same sample to where it does not, if there is such a place.

    There are such where the first or the last sample has fewer uses than the others: a pass without it may be of one
    sample alone.
    """
    runs = [list(run) for _, run in groupby(uses)]
    found = [run[0] for run in runs]
    for use in (use for run in runs for use in run[1:]):
        gaps = (gap for gap in range(len(found) + 1) if use not in found[max(gap - 1, 0) : gap + 1])
        found.insert(next(gaps, found.index(use)), use)
    return found
