"""The order of one epoch: which dataset index stands at which position."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

import numpy as np

from stoker.plan.domains import Domain
from stoker.plan.permutation import Permutation, Positions, derive

_BUFFER = 1024  # positions; computing as many costs little more than computing one (38 against 23 µs)


class Order(Protocol):
    """A sequence of dataset indices that can be read from anywhere."""

    def indices(self, start: int, stop: int) -> Sequence[int]:
        """The indices at positions [start, stop), as Python ints."""

    def at(self, positions: Positions) -> Positions:
        """The indices at any positions."""


class Sequential:
    """The dataset's own order."""

    __slots__ = ("_n",)

    def __init__(self, n: int) -> None:
        self._n = n

    def indices(self, start: int, stop: int) -> range:
        _check_span(start, stop, self._n)
        return range(start, stop)

    def at(self, positions: Positions) -> Positions:
        return positions


class Shuffled:
    """Any index may stand anywhere, all permutations alike."""

    __slots__ = ("_n", "_permutation")

    def __init__(self, n: int, key: int) -> None:
        self._n, self._permutation = n, Permutation(n, key)

    def indices(self, start: int, stop: int) -> list[int]:
        _check_span(start, stop, self._n)
        return self.at(np.arange(start, stop, dtype=np.int64)).tolist()  # type: ignore[no-any-return]

    def at(self, positions: Positions) -> Positions:
        return self._permutation(positions)


class Nearby:
    """A shuffle in which no index is `window` or more away from its own position.

    The epoch is cut into blocks of `window` and each block is permuted by itself. Where the cuts fall
    follows from the key, so samples that are apart in one epoch meet in another.
    """

    __slots__ = ("_key", "_last", "_n", "_offset", "_window")

    def __init__(self, n: int, window: int, key: int) -> None:
        if window < 1:
            raise ValueError(f"a window of {window} holds no sample: pass a window of 1 or more")
        # A window that holds the whole epoch needs no cut.
        self._offset = derive(key, 0) % window if window < n else 0
        self._n, self._window, self._key = n, min(window, max(n, 1)), key
        self._last: tuple[int, Permutation] | None = None

    def indices(self, start: int, stop: int) -> list[int]:
        _check_span(start, stop, self._n)
        return self.at(np.arange(start, stop, dtype=np.int64)).tolist()  # type: ignore[no-any-return]

    def at(self, positions: Positions) -> Positions:
        found = np.empty_like(positions)
        blocks = (positions + self._offset) // self._window
        for block in np.unique(blocks).tolist():
            lo = max(block * self._window - self._offset, 0)
            hi = min((block + 1) * self._window - self._offset, self._n)
            here = blocks == block
            found[here] = self._permutation(block, hi - lo)(positions[here] - lo) + lo
        return found

    def _permutation(self, block: int, size: int) -> Permutation:
        # One attribute, replaced as a whole: threads may share an order.
        last = self._last
        if last is None or last[0] != block:
            last = self._last = (block, Permutation(size, derive(self._key, 1, block)))
        return last[1]


class ListOrder(Order, Protocol):
    """An order that gives lists."""

    def indices(self, start: int, stop: int) -> list[int]:
        """The indices at positions [start, stop)."""


class Buffered:
    """Reads an order ahead into a buffer, so that small batches become as cheap a sample as big ones."""

    __slots__ = ("_last", "_n", "_order")

    def __init__(self, n: int, order: ListOrder) -> None:
        self._n, self._order = n, order
        self._last: tuple[int, list[int]] = (-1, [])

    def indices(self, start: int, stop: int) -> list[int]:
        _check_span(start, stop, self._n)
        if stop - start >= _BUFFER:
            return self._order.indices(start, stop)
        number, first = divmod(start, _BUFFER)
        last = first + stop - start
        if last <= _BUFFER:
            return self._buffer(number)[first:last]
        return self._buffer(number)[first:] + self._buffer(number + 1)[: last - _BUFFER]

    def at(self, positions: Positions) -> Positions:
        return self._order.at(positions)

    def _buffer(self, number: int) -> list[int]:
        # One attribute, replaced as a whole: threads may share an order.
        last = self._last
        if last[0] != number:
            start = number * _BUFFER
            last = self._last = (number, self._order.indices(start, min(start + _BUFFER, self._n)))
        return last[1]


class Listed:
    """Any indices, one after the other, or as another order permutes their places."""

    __slots__ = ("_indices", "_places")

    def __init__(self, indices: Positions, places: Order) -> None:
        self._indices, self._places = indices, places

    def indices(self, start: int, stop: int) -> list[int]:
        _check_span(start, stop, len(self._indices))
        if isinstance(self._places, Sequential):
            return self._indices[start:stop].tolist()  # type: ignore[no-any-return]
        return self._indices[self._places.indices(start, stop)].tolist()  # type: ignore[no-any-return]

    def at(self, positions: Positions) -> Positions:
        return self._indices[self._places.at(positions)]


# The epoch that is being read and the one that is being prefetched, for train and validation plans at once.
@lru_cache(maxsize=8)
def plain_order(length: int, shuffle: bool | int, seed: int, epoch: int) -> Order:
    """Each of so many samples once, as ``shuffle`` says."""
    if shuffle is False:
        return Sequential(length)
    key = derive(Domain.SHUFFLE, seed, epoch)
    return Buffered(length, Shuffled(length, key) if shuffle is True else Nearby(length, shuffle, key))


def _check_span(start: int, stop: int, n: int) -> None:
    if not 0 <= start <= stop <= n:
        raise ValueError(f"positions {start} to {stop} are not within an epoch of {n}")
