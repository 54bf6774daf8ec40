"""Mixtures: several sources in one endless stream of samples, each by its weight and at its own pace.

The stream is arithmetic, like any other order. Its positions are cut into *segments*, in each of which the weights are
the same; within one, `exact_quotas.py` tells the source of a position and how many samples of the source came before
it. By that count the source goes through its own epochs, each in an order of its own. Epoch e of a mixture is the
positions from e times its length on: it goes on where the one before has ended.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Literal, NamedTuple

import numpy as np

from stoker.plan.domains import Domain
from stoker.plan.exact_quotas import ExactQuotas, quotas
from stoker.plan.order import Nearby, Order, Sequential, Shuffled
from stoker.plan.permutation import Permutation, Positions, derive
from stoker.plan.quotas import Quotas, SourceShare, assigned

By = Literal["quota", "chance"]

ENDLESS = 2**62  # positions: how many an order can have
FORMULA = 2  # raised when a mixture, of whatever weights, would have another source at any position

_BLOCK = 4096  # positions; by chance, the positions of a block change places with each other
_BUFFER = 8192  # positions that are worked out together: each source costs 25 µs, however few of them are its own


class Segment(NamedTuple):
    """The positions of the stream from `start` to the next segment.

    Attributes:
        start: Its first position.
        weights: Of the sources there.
        counts: How many samples of each source came before.
        owed: How many more they should have been by the weights that there were.
    """

    start: int
    weights: tuple[float, ...]
    counts: tuple[int, ...]
    owed: tuple[float, ...]

    @classmethod
    def first(cls, start: int, weights: tuple[float, ...], counts: tuple[int, ...]) -> Segment:
        """One that no other comes before."""
        return cls(start, weights, counts, (0.0,) * len(weights))

    @property
    def quotas(self) -> Quotas | ExactQuotas:
        return quotas(self.weights, self.owed)


@dataclass(frozen=True)
class MixedStream:
    """Which source each position has, and which of its samples: the j-th one that is taken of it.

    Args:
        segments: In order, the first one from position 0 on.
        by: "quota": sources come as evenly as can be. "chance": their order within blocks of 4,096 positions is drawn.
        seed: Any int, which chance follows from.
    """

    segments: tuple[Segment, ...]
    by: By
    seed: int

    @classmethod
    def of(cls, schedule: Sequence[tuple[int, tuple[float, ...]]], by: By, seed: int) -> MixedStream:
        """The stream whose weights change at these positions, the first of which is 0."""
        (_, weights), *changes = schedule
        stream = cls((Segment.first(0, weights, (0,) * len(weights)),), by, seed)
        for position, weights in changes:
            stream = stream.changed(position, weights)
        return stream

    def changed(self, position: int, weights: tuple[float, ...]) -> MixedStream:
        """The same up to `position`, and from there on with these weights."""
        kept = tuple(segment for segment in self.segments if segment.start < position)
        before = replace(self, segments=kept or self.segments[:1])
        segment = Segment(position, weights, tuple(before.counts(position)), tuple(before._owed(position)))
        return replace(self, segments=(*kept, segment))

    def counts(self, position: int) -> list[int]:
        """How many samples of each source come before `position`."""
        segment = self._segment(position)
        offset = position - segment.start
        rest = offset % _BLOCK if self.by == "chance" else 0
        own = segment.quotas.counts(offset - rest)
        if rest:
            for source, before, places in self._drawn(segment, offset - rest):
                own[source] = before + int(np.searchsorted(places, rest))
        return [count + more for count, more in zip(segment.counts, own, strict=True)]

    def _owed(self, position: int) -> Sequence[float]:
        """How many more samples each source should have had before `position`; chance owes nothing to anybody."""
        segment = self._segment(position)
        return segment.quotas.owed(position - segment.start) if self.by == "quota" else segment.owed

    def shared_out(self, start: int, stop: int) -> Iterator[SourceShare]:
        """The positions [start, stop), by source; of each segment by itself."""
        begin = start
        while start < stop:
            segment = self._segment(start)
            following = self._after(segment)
            upto = stop if following is None else min(stop, following)
            for source, before, places in self._within(segment, start - segment.start, upto - segment.start):
                if places.size:
                    yield SourceShare(source, segment.counts[source] + before, places + (start - begin))
            start = upto

    def assigned(self, start: int, stop: int) -> tuple[Positions, Positions]:
        """The sources of positions [start, stop), and how many samples each of them had before."""
        return assigned(list(self.shared_out(start, stop)), stop - start)

    def first_after(self, source: int, count: int) -> int | None:
        """The first position before which there were `count` samples of the source; None if there is none."""
        last = [segment for segment in self.segments if segment.counts[source] < count][-1]
        first, end = last.start, self._after(last) or ENDLESS
        if self.counts(end)[source] < count:
            return None
        # Whole blocks first: a count between two of them takes a block's drawing.
        blocks = range((end - first) // _BLOCK + 1)
        block = bisect_left(blocks, count, key=lambda block: self.counts(first + block * _BLOCK)[source])
        begin = first + max(block - 1, 0) * _BLOCK
        rest = range(begin, min(begin + _BLOCK, end) + 1)
        return rest[bisect_left(rest, count, key=lambda position: self.counts(position)[source])]

    def span(self, position: int) -> tuple[int, int]:
        """Where the segment of a position begins, and where it ends."""
        segment = self._segment(position)
        return segment.start, self._after(segment) or 2 * ENDLESS

    def _segment(self, position: int) -> Segment:
        return self.segments[bisect_right(self.segments, position, key=lambda segment: segment.start) - 1]

    def _after(self, segment: Segment) -> int | None:
        """Where the next segment begins."""
        nth = bisect_right(self.segments, segment.start, key=lambda segment: segment.start)
        return self.segments[nth].start if nth < len(self.segments) else None

    def _within(self, segment: Segment, start: int, stop: int) -> list[SourceShare]:
        """The same of positions that are counted from the segment's beginning."""
        if self.by == "quota":
            return segment.quotas.shared_out(start, stop)
        shares = []
        for block in range(start // _BLOCK * _BLOCK, stop, _BLOCK):
            low, high = max(start - block, 0), min(stop - block, _BLOCK)
            for source, before, places in self._drawn(segment, block):
                first, last = np.searchsorted(places, (low, high)).tolist()
                shares.append(SourceShare(source, before + first, places[first:last] + (block - start)))
        return shares

    def _drawn(self, segment: Segment, start: int) -> list[SourceShare]:
        """One block, in which sources have the quotas of the block but come in an order that was drawn."""
        size = np.arange(_BLOCK, dtype=np.int64)
        places = Permutation(_BLOCK, derive(Domain.CHANCE, self.seed, segment.start + start))(size)
        shares = segment.quotas.shared_out(start, start + _BLOCK)
        return [SourceShare(source, before, np.sort(places[given])) for source, before, given in shares]


class MixedIndices(Sequence[int]):
    """Dataset indices, as Python ints, and what need not be found out again: of which source, and which one there."""

    __slots__ = ("_indices", "own", "sources")

    def __init__(self, indices: Positions, sources: Positions, own: Positions) -> None:
        self._indices, self.sources, self.own = indices, sources, own

    def __len__(self) -> int:
        return len(self._indices)

    def __getitem__(self, place: Any) -> Any:
        return self._indices[place].tolist()

    def __iter__(self) -> Iterator[int]:
        return iter(self._indices.tolist())


class Mixed:
    """The order of a stretch of the stream: dataset indices, where the dataset is the sources one after the other.

    Args:
        stream: Which sample of which source comes where.
        names: Of the sources, which the orders of their epochs follow from: they stay if other sources come and go.
        lengths: Of the sources.
        first: The stream's position that is this order's first.
        positions: How many there are.
        shuffle: As in a plan, but within each source: of its own epoch, True for all samples, or an int window.
        seed: Any int.
    """

    __slots__ = ("_begins", "_epochs", "_first", "_keys", "_last", "_lengths", "_positions", "_shuffle", "_stream")

    def __init__(
        self,
        stream: MixedStream,
        names: tuple[str, ...],
        lengths: tuple[int, ...],
        *,
        first: int,
        positions: int,
        shuffle: bool | int,
        seed: int,
    ) -> None:
        self._stream, self._lengths, self._shuffle = stream, lengths, shuffle
        self._first, self._positions = first, positions
        self._keys = [derive(Domain.SOURCE, seed, int.from_bytes(name.encode(), "big"), len(name)) for name in names]
        self._begins = [0, *accumulate(lengths)]
        self._epochs: dict[int, tuple[int, Order]] = {}  # of each source, the order of its latest epoch
        self._last: tuple[int, tuple[Positions, Positions, Positions]] | None = None

    def indices(self, start: int, stop: int) -> MixedIndices:
        if not 0 <= start <= stop <= self._positions:
            raise ValueError(f"positions {start} to {stop} are not within an epoch of {self._positions}")
        start, stop = start + self._first, stop + self._first
        first, known = self._buffer(start)
        if stop - first > known[0].size:
            first, known = start, self._found(start, stop)
        return MixedIndices(*(array[start - first : stop - first] for array in known))

    def at(self, positions: Positions) -> Positions:
        return np.array([self.indices(position, position + 1)[0] for position in positions.tolist()], dtype=np.int64)

    def _buffer(self, start: int) -> tuple[int, tuple[Positions, Positions, Positions]]:
        """The positions around `start` within its segment, and the first of them."""
        # One attribute, replaced as a whole: threads may share an order.
        last = self._last
        if last is None or not last[0] <= start < last[0] + last[1][0].size:
            low, high = self._stream.span(start)
            begin = start // _BUFFER * _BUFFER
            first = max(begin, low)
            last = self._last = first, self._found(first, min(begin + _BUFFER, high))
        return last

    def _found(self, start: int, stop: int) -> tuple[Positions, Positions, Positions]:
        """Of these positions of the stream: indices, sources, and numbers within the sources."""
        found, sources, own = (np.empty(stop - start, dtype=np.int64) for _ in range(3))
        for source, before, places in self._stream.shared_out(start, stop):
            samples = self._samples(source, before, before + places.size)
            sources[places], own[places] = source, samples
            found[places] = samples + self._begins[source]
        return found, sources, own

    def _samples(self, source: int, start: int, stop: int) -> Positions:
        """The samples that are the source's own positions [start, stop), through however many epochs of its own."""
        length = self._lengths[source]
        if self._shuffle is False or length == 1:
            own = np.arange(start, stop, dtype=np.int64)
            return own % length if start // length != (stop - 1) // length else own - start // length * length
        parts = []
        while start < stop:
            epoch, first = divmod(start, length)
            upto = min(stop, (epoch + 1) * length)
            order = self._order(source, epoch)
            parts.append(order.at(np.arange(first, first + upto - start, dtype=np.int64)))
            start = upto
        return np.concatenate(parts)

    def _order(self, source: int, epoch: int) -> Order:
        known = self._epochs.get(source)
        if known is None or known[0] != epoch:
            length, key = self._lengths[source], derive(self._keys[source], epoch)
            if self._shuffle is True:
                order: Order = Shuffled(length, key)
            else:
                order = Nearby(length, self._shuffle, key) if self._shuffle else Sequential(length)
            known = self._epochs[source] = (epoch, order)
        return known[1]
