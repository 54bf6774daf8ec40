"""``Weighted``: samples are drawn by chance, by weights."""

from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt

from stoker.counts import BOOLS
from stoker.plan.domains import Domain
from stoker.plan.given import digest_of
from stoker.plan.order import Buffered, Listed, Order, Sequential
from stoker.plan.permutation import Positions, derive, fractions


class Weighted:
    """Samples are drawn by chance, in proportion to their weights: ``Loader(dataset, order=Weighted(weights))``.

    The k-th draw of an epoch is computed from the seed, the epoch and k. So it is the same for any number of workers,
    shards take turns in one sequence of draws, and a resume goes on exactly. Each epoch has draws of its own.

    Args:
        weights: The weight of each sample, 0 or more; their sum does not matter. A sample of weight 0 is never drawn.
        replacement: True: each draw is independent, so a sample may come several times in an epoch. False: it comes
            once at most, and samples of large weight come early.
        length: The number of draws in an epoch. None: as many as there are weights; without replacement, as many as
            there are weights above 0.

    Raises:
        TypeError: The weights are not numbers, or ``length`` is not a whole number.
        ValueError: Weights are negative, NaN, infinite, or all 0; or there are fewer samples than draws without
            replacement. The loader raises it if there are not as many weights as samples.

    Example:
        >>> import numpy as np, stoker
        >>> labels = np.array([0, 0, 0, 0, 0, 0, 0, 0, 0, 1])
        >>> balanced = stoker.Weighted(1 / np.bincount(labels)[labels], length=1000)
        >>> with stoker.Loader(labels, batch_size=None, order=balanced) as loader:
        ...     450 < sum(int(label) for label in loader) < 550
        True
    """

    __slots__ = ("_digest", "_ends", "_length", "_replacement", "_weights")

    def __init__(self, weights: Any, replacement: bool = True, *, length: int | None = None) -> None:
        if not isinstance(replacement, bool):
            raise TypeError(f"Weighted(replacement={replacement!r}): pass True or False")
        self._weights = _checked_weights(weights)
        self._replacement = replacement
        positive = int(np.count_nonzero(self._weights))
        self._length = _checked_length(length, len(self._weights) if replacement else positive)
        if not replacement and self._length > positive:
            raise ValueError(
                f"Weighted(length={self._length}) without replacement, of {positive} samples whose weight is above 0: "
                f"pass length={positive} at most, or replacement=True"
            )
        self._ends: npt.NDArray[np.float64] | None = None  # cumulative sums, once they are needed
        self._digest = digest_of(self._weights)

    def positions(self, length: int, seed: int, epoch: int) -> int:
        """Draws in an epoch."""
        if length != len(self._weights):
            raise ValueError(
                f"Weighted has {len(self._weights)} weights, and the dataset has {length} samples: pass one weight for "
                f"each sample"
            )
        return self._length

    def of_epoch(self, length: int, shuffle: bool | int, seed: int, epoch: int) -> Order:
        """The draws of that epoch."""
        self.positions(length, seed, epoch)
        if not self._replacement:
            return Listed(self._without_replacement(derive(Domain.DRAWS_ONCE, seed, epoch)), Sequential(self._length))
        if self._ends is None:
            self._ends = np.cumsum(self._weights)
        return Buffered(self._length, _Draws(self._ends, derive(Domain.DRAWS, seed, epoch)))

    def fingerprint(self, epoch: int | None) -> str:
        """What a state holds of it."""
        return f"Weighted({self._digest}, replacement={self._replacement}, length={self._length})"

    def _without_replacement(self, key: int) -> Positions:
        """As if drawn one after the other: each has a random time, with its weight as the rate, and the first come."""
        able = np.flatnonzero(self._weights)
        with np.errstate(over="ignore"):  # of tiny weights
            times = -np.log(fractions(key, able)) / self._weights[able]
        return able[np.argsort(times, kind="stable")[: self._length]].astype(np.int64, copy=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Weighted) and self.fingerprint(None) == other.fingerprint(None)

    def __hash__(self) -> int:
        return hash((self._digest, self._replacement, self._length))

    def __repr__(self) -> str:
        return f"Weighted({len(self._weights)} weights, replacement={self._replacement}, length={self._length})"


class _Draws:
    """Draws with replacement: the k-th is where a random number falls among the cumulative sums."""

    __slots__ = ("_ends", "_key", "_last")

    def __init__(self, ends: npt.NDArray[np.float64], key: int) -> None:
        self._ends, self._key = ends, key
        self._last = int(np.searchsorted(ends, ends[-1]))  # the last one whose weight is above 0

    def indices(self, start: int, stop: int) -> list[int]:
        return self.at(np.arange(start, stop, dtype=np.int64)).tolist()  # type: ignore[no-any-return]

    def at(self, positions: Positions) -> Positions:
        points = fractions(self._key, positions) * self._ends[-1]
        order, found = np.argsort(points), np.empty(len(points), dtype=np.int64)
        # From low to high: half as long for a million weights, which no cache of a processor holds.
        found[order] = np.searchsorted(self._ends, points[order], side="right")
        return np.minimum(found, self._last, out=found)  # a product may be rounded up to the whole sum


def _checked_weights(weights: Any) -> npt.NDArray[np.float64]:
    try:
        found = np.asarray(weights)
        found = found if found.dtype.kind in "biuf" else np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"Weighted: the weights are not numbers ({error}): pass one number for each sample") from error
    if found.ndim != 1:
        raise ValueError(f"Weighted: the weights have the shape {found.shape}: pass one number for each sample")
    found = found.astype(np.float64)
    wrong = np.flatnonzero(~(np.isfinite(found) & (found >= 0)))
    if len(wrong):
        raise ValueError(f"Weighted: weights[{wrong[0]}] is {found[wrong[0]]}: pass finite numbers of 0 or more")
    with np.errstate(over="ignore"):
        total = found.sum()
    if not total:
        raise ValueError(f"Weighted: all {len(found)} weights are 0, so that nothing can be drawn: pass some above 0")
    if not np.isfinite(total):
        found /= found.max()
    found.flags.writeable = False
    return found


def _checked_length(length: Any, otherwise: int) -> int:
    if length is None:
        return otherwise
    try:
        number = -1 if isinstance(length, BOOLS) else index(length)
    except TypeError:
        raise TypeError(f"Weighted(length={length!r}): pass the number of draws in an epoch, or None") from None
    if not 0 < number <= 2**62:
        raise ValueError(f"Weighted(length={length!r}): pass the number of draws in an epoch, 1 or more, or None")
    return number
