"""Groups: parts of files that are read and mixed together, in the order of an epoch.

Pure arithmetic on (seed, epoch, sizes of the parts), like the rest of the plan: the number of workers plays no role.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from stoker.plan.domains import Domain
from stoker.plan.order import Shuffled
from stoker.plan.permutation import Positions, derive, extend

_ENOUGH = 2**22  # bytes: smaller parts are read together, since handing each out would cost more than reading it
_FEWEST = 64  # groups, where there are as many parts: there must be some for each worker


class Share(NamedTuple):
    """The samples [start, stop) of a group that are one shard's, in the order of the epoch; None: to its end.

    ``lead``: so many of them belong to a batch that begins in the share before.
    """

    group: int
    start: int = 0
    stop: int | None = None
    lead: int = 0


class Groups:
    """The groups of one epoch.

    A *strand* is a run of parts that can only be read quickly one after the other, such as the slices of one large row
    group. The shuffle permutes strands. ``abreast`` of them are then read side by side: the first part of each, the
    second of each, and so on.

    Args:
        sizes: Bytes of each part, negative where they are not known.
        interleave: Parts in a group, at least.
        shuffle: Whether strands change places, and samples within a group.
        seed: Of the shuffle.
        epoch: Its number.
        strands: The strand of each part: 0 for the first part, and then the same number or the next one. None: each
            part is a strand by itself.
        abreast: How many strands are read side by side; None: ``interleave``.

    Example:
        >>> groups = Groups(np.array([10, 10, 10]), interleave=2, shuffle=False, seed=0, epoch=0)
        >>> [groups.parts(number) for number in range(len(groups))]
        [[0, 1], [2]]
    """

    def __init__(
        self,
        sizes: Positions,
        interleave: int,
        shuffle: bool,
        seed: int,
        epoch: int,
        strands: Positions | None = None,
        abreast: int | None = None,
    ) -> None:
        self._shuffle, self._seed, self._epoch = shuffle, seed, epoch
        self._order = np.arange(len(sizes))
        if shuffle:
            strands = self._order if strands is None else strands
            count = int(strands[-1]) + 1 if len(strands) else 0
            permuted = Shuffled(count, derive(Domain.STRANDS, seed, epoch)).at(np.arange(count))
            self._order = permuted if count == len(sizes) else _side_by_side(permuted, strands, abreast or interleave)
        self._bounds = _bounds(np.cumsum(np.where(sizes < 0, _ENOUGH, sizes)[self._order]), interleave)

    def __len__(self) -> int:
        return len(self._bounds) - 1

    def parts(self, group: int) -> list[int]:
        """The numbers of its parts."""
        return self._order[self._bounds[group] : self._bounds[group + 1]].tolist()  # type: ignore[no-any-return]

    def seed(self, group: int) -> int:
        """A 64-bit seed for what is random in reading and collating it."""
        return extend(derive(Domain.GROUP_SEED, self._seed, self._epoch), group)

    def key(self, group: int) -> int | None:
        """Of the order of its samples; None: as they are read."""
        return derive(Domain.GROUP, self._seed, self._epoch, group) if self._shuffle else None

    def shares(self, counts: Positions, first: int, count: int, batch_size: int) -> Iterator[Share]:
        """The shares that hold ``count`` samples from the ``first`` on, out of parts with so many samples each."""
        ends = np.cumsum(counts[self._order])[np.asarray(self._bounds[1:]) - 1] if len(self) else np.zeros(0, np.int64)
        begin = 0
        for group, end in enumerate(ends.tolist()):
            start, stop = max(first, begin), min(first + count, end)
            if start < stop:
                lead = min((first - start) % batch_size, stop - start)
                yield Share(group, start - begin, stop - begin, lead)
            begin = end


def sample_order(count: int, key: int | None) -> Positions:
    """The order of a group's samples."""
    positions = np.arange(count)
    return positions if key is None else Shuffled(count, key).at(positions)


def _side_by_side(permuted: Positions, strands: Positions, together: int) -> Positions:
    """The parts of so many strands at a time: all first ones, all second ones, and so on."""
    rank = np.empty_like(permuted)
    rank[permuted] = np.arange(len(permuted))
    ranks = rank[strands]
    nth = np.arange(len(strands)) - np.searchsorted(strands, strands)
    return np.lexsort((ranks, nth, ranks // together))


def _bounds(ends: Positions, interleave: int) -> list[int]:
    """Where each group begins, and the last one ends."""
    parts, bounds, before = len(ends), [0], 0
    enough = min(_ENOUGH, int(ends[-1]) // _FEWEST) if parts else 0
    while bounds[-1] < parts:
        filled = int(np.searchsorted(ends, before + enough)) + 1
        bounds.append(min(max(filled, bounds[-1] + interleave), parts))
        before = int(ends[bounds[-1] - 1])
    return bounds
