"""Exact quotas: sources that are never more than one position from their shares.

For most weights, the tree of `quotas.py` keeps to that by itself. For some it is a few hundredths more now and then,
for a few positions. These are found here, and the positions around them given out anew: earliest deadline first,
between two positions at which all sources are close to their shares. There, counts are those of the tree, so that a
position's source still follows from the positions around it alone. Every number in this file is part of the frozen
formula: to change one is to raise `FORMULA`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from heapq import heappop, heappush
from math import ceil, floor, inf
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stoker.plan.permutation import Positions
from stoker.plan.quotas import Quotas, SourceShare, assigned

Errors = npt.NDArray[np.float64]  # how many positions each source has had too many of

_CELL = 8192  # positions that are looked at together
_SEARCHED = 512  # positions at the beginning of a cell, at the calmest of which it begins indeed
_CALM = (0.5, 0.6, 0.75, 0.85, 0.9, 0.95, 1.0)  # positions from its share that a source may be where a stretch begins
_CALM_ENOUGH = 0.75  # the same where a cell begins
_LONGEST = 1024  # positions in a stretch
_MOST = 1 + 1e-9  # positions from its share: what floats are rounded by must not matter


class _Stretch(NamedTuple):
    """Positions from `start` on that have these sources instead of the tree's."""

    start: int
    sources: Positions


class ExactQuotas:
    """Shares out positions as ``Quotas`` does, but no source is ever more than one from its share.

    That is not proven, but tried: `docs/design/mixtures.md` says how often. Where no order is found, it is the tree's.

    Args:
        weights: As for ``Quotas``.
        owed: As for ``Quotas``.
    """

    __slots__ = ("_shares", "_tree")

    def __init__(self, weights: Sequence[float], owed: Sequence[float] = ()) -> None:
        self._tree = Quotas(weights, owed)
        exact = [Fraction(repr(float(weight))) for weight in weights]
        self._shares = np.array([float(weight / sum(exact)) for weight in exact])

    def counts(self, n: int) -> list[int]:
        """How many of the first n positions each source has."""
        counts = self._tree.counts(n)
        if np.abs(self._errors(n)).max() < _CALM[0] - 1e-6:  # no stretch goes over it
            return counts
        for start, sources in self._stretches(n, n):
            own = self._tree.assigned(start, n)[0]
            moved = np.bincount(sources[: n - start], minlength=len(counts)) - np.bincount(own, minlength=len(counts))
            counts = [count + more for count, more in zip(counts, moved.tolist(), strict=True)]
        return counts

    def owed(self, n: int) -> list[float]:
        """How many positions each source has had too few of after the first n, with what it was owed before."""
        both = zip(self._tree.owed(n), self._tree.counts(n), self.counts(n), strict=True)
        return [owed + (by_tree - count) for owed, by_tree, count in both]

    def shared_out(self, start: int, stop: int) -> list[SourceShare]:
        """The positions [start, stop), by source."""
        shares, stretches = self._tree.shared_out(start, stop), list(self._stretches(start, stop))
        if not stretches:
            return shares
        sources, _ = assigned(shares, stop - start)
        for first, own in stretches:
            low, high = max(first, start), min(first + own.size, stop)
            sources[low - start : high - start] = own[low - first : high - first]
        counts = self.counts(start)
        return [SourceShare(source, counts[source], (sources == source).nonzero()[0]) for source in range(len(counts))]

    def assigned(self, start: int, stop: int) -> tuple[Positions, Positions]:
        """The sources of positions [start, stop), and how many positions each of them had before this one."""
        return assigned(self.shared_out(start, stop), stop - start)

    def _stretches(self, start: int, stop: int) -> Iterator[_Stretch]:
        """Those that have some of the positions [start, stop); if there are none, those that go over `start`."""
        for cell in range(max(start // _CELL - 1, 0), max(stop - 1, start) // _CELL + 1):
            for stretch in _stretches_of(self, cell):
                if stretch.start < max(stop, start + 1) and stretch.start + stretch.sources.size > start:
                    yield stretch

    def in_cell(self, cell: int) -> tuple[_Stretch, ...]:
        """The stretches of a cell."""
        start, first, last = cell * _CELL, _begin_of(self, cell), _begin_of(self, cell + 1)
        shares, before = self._tree.shared_out(start, last), self._errors(start)
        far = np.concatenate([self._far(share, before[share.source]) for share in shares])
        far = np.sort(far[(far > first - start) & (far < last - start)])
        if not far.size:
            return ()
        sources, _ = assigned(shares, last - start)
        stretches = []
        for near in np.split(far, (np.diff(far) > 2 * _LONGEST).nonzero()[0] + 1):
            # No stretch that is not too long goes beyond these.
            low, high = max(int(near[0]) - _LONGEST, first - start), min(int(near[-1]) + _LONGEST, last - start)
            own = sources[low:high]
            found = _given_anew(self._all_errors(self._errors(start + low), own), own, self._shares, 0)
            stretches += [_Stretch(start + low + place, anew) for place, anew in found]
        return tuple(stretches)

    def begin(self, cell: int) -> int:
        """Where a cell begins: sources are close to their shares, if that is so anywhere near."""
        start = cell * _CELL
        before = self._errors(start)
        if np.abs(before).max() <= _CALM_ENOUGH:
            return start
        most = np.abs(self._all_errors(before, self._tree.assigned(start, start + _SEARCHED)[0])).max(axis=1)
        calm = next((near for limit in (_CALM_ENOUGH, 0.9, 1.0) if (near := (most <= limit).nonzero()[0]).size), [0])
        return start + int(calm[0])

    def _errors(self, n: int) -> Errors:
        """By the tree, after the first n positions; of sources that have a weight."""
        return np.where(self._shares > 0, self._tree.errors(n), 0.0)

    def _all_errors(self, before: Errors, sources: Positions) -> Errors:
        """After each of these positions, and before the first of them."""
        had = np.zeros((sources.size + 1, before.size))
        had[np.arange(1, sources.size + 1), sources] = 1
        errors: Errors = before + had.cumsum(axis=0) - np.arange(sources.size + 1)[:, None] * self._shares
        return errors

    def _far(self, share: SourceShare, before: float) -> Positions:
        """Where a source is too far from its share: it need not be looked at but before and after its own positions."""
        weight, places = self._shares[share.source], share.places
        fewest = before + np.arange(places.size) - weight * places
        most = fewest + (1 - weight)
        limit = 2 - _MOST  # on the safe side
        return np.concatenate((places[fewest < -limit], places[most > limit] + 1))


@lru_cache(maxsize=64)
def quotas(weights: tuple[float, ...], owed: tuple[float, ...]) -> Quotas | ExactQuotas:
    """Those of these weights; most mixtures have the same ones for long.

    Where sources are owed more than they can be given at once, they are further from their shares than this can mend.
    """
    tree = Quotas(weights, owed)
    return ExactQuotas(weights, owed) if _MOST < tree.farthest < inf else tree


@lru_cache(maxsize=256)
def _begin_of(quotas: ExactQuotas, cell: int) -> int:
    return quotas.begin(cell)


@lru_cache(maxsize=256)
def _stretches_of(quotas: ExactQuotas, cell: int) -> tuple[_Stretch, ...]:
    return quotas.in_cell(cell)


def _given_anew(errors: Errors, sources: Positions, shares: Errors, level: int) -> Iterator[tuple[int, Positions]]:
    """Stretches in which no source is too far from its share, for those in which one is.

    Args:
        errors: Before each position, and after the last.
        sources: Of the positions.
        shares: Of the sources.
        level: How calm it is where stretches begin and end, in `_CALM`.
    """
    most = np.abs(errors).max(axis=1)
    bounds = np.union1d((most <= _CALM[level]).nonzero()[0], (0, sources.size))
    after = np.unique(np.searchsorted(bounds, (most[1:-1] > _MOST).nonzero()[0] + 1))
    for first, last in zip(bounds[after - 1].tolist(), bounds[after].tolist(), strict=True):
        own = sources[first:last]
        found = _by_deadline(errors[first], own, shares) if own.size <= _LONGEST else None
        if found is not None:
            yield first, found
        elif level + 1 < len(_CALM):
            for place, anew in _given_anew(errors[first : last + 1], own, shares, level + 1):
                yield first + place, anew


def _by_deadline(before: Errors, sources: Positions, shares: Errors) -> Positions | None:
    """The same sources in an order in which none is ever more than one from its share; None if it is not found.

    A source's k-th position comes as soon as it has not too many then, and before it has too few.
    """
    counts, size = np.bincount(sources, minlength=shares.size).tolist(), sources.size
    waiting = sorted(
        (max(ceil((before[source] + k + 1 - _MOST) / shares[source]) - 1, 0), source, k)
        for source, count in enumerate(counts)
        for k in range(count)
    )
    waiting.reverse()
    ready: list[tuple[int, int]] = []
    found = np.empty(size, dtype=np.int64)
    for place in range(size):
        while waiting and waiting[-1][0] <= place:
            _, source, k = waiting.pop()
            heappush(ready, (floor((before[source] + k + _MOST) / shares[source]), source))
        if not ready or ready[0][0] < place:
            return None
        found[place] = heappop(ready)[1]
    return found
