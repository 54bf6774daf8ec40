"""Groups: chunk files that are read and mixed together, in the order of an epoch.

Pure arithmetic on (seed, epoch, sizes of the files), like the rest of the plan: the number of workers plays no part.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from stoker.plan.order import Shuffled
from stoker.plan.permutation import Positions, derive, extend

_FILES_KEY, _GROUP_KEY, _GROUP_SEED = 5, 6, 7  # domains, as in plan.py

_ENOUGH = 2**22  # bytes: smaller files are read together, since handing each out would cost more than reading it
_FEWEST = 64  # groups, where there are as many files: there must be some for each worker


class Part(NamedTuple):
    """The samples [start, stop) of a group, in the order of the epoch; None: to its end.

    ``lead``: so many of them belong to a batch that begins in the part before.
    """

    group: int
    start: int = 0
    stop: int | None = None
    lead: int = 0


class Groups:
    """The groups of one epoch.

    Args:
        sizes: Bytes of each file, negative where they are not known.
        interleave: Files in a group, at least.
        shuffle: Whether files change places, and samples within a group.
        seed: Of the shuffle.
        epoch: Its number.

    Example:
        >>> groups = Groups(np.array([10, 10, 10]), interleave=2, shuffle=False, seed=0, epoch=0)
        >>> [groups.files(number) for number in range(len(groups))]
        [[0, 1], [2]]
    """

    def __init__(self, sizes: Positions, interleave: int, shuffle: bool, seed: int, epoch: int) -> None:
        self._shuffle, self._seed, self._epoch = shuffle, seed, epoch
        self._order = np.arange(len(sizes))
        if shuffle:
            self._order = Shuffled(len(sizes), derive(_FILES_KEY, seed, epoch)).at(self._order)
        self._bounds = _bounds(np.cumsum(np.where(sizes < 0, _ENOUGH, sizes)[self._order]), interleave)

    def __len__(self) -> int:
        return len(self._bounds) - 1

    def files(self, group: int) -> list[int]:
        """The numbers of its files."""
        return self._order[self._bounds[group] : self._bounds[group + 1]].tolist()  # type: ignore[no-any-return]

    def seed(self, group: int) -> int:
        """A 64-bit seed for what is random in reading and collating it."""
        return extend(derive(_GROUP_SEED, self._seed, self._epoch), group)

    def key(self, group: int) -> int | None:
        """Of the order of its samples; None: as they are read."""
        return derive(_GROUP_KEY, self._seed, self._epoch, group) if self._shuffle else None

    def parts(self, counts: Positions, first: int, count: int, batch_size: int) -> Iterator[Part]:
        """The parts that hold ``count`` samples from the ``first`` on, out of files with so many samples each."""
        ends = np.cumsum(counts[self._order])[np.asarray(self._bounds[1:]) - 1] if len(self) else np.zeros(0, np.int64)
        begin = 0
        for group, end in enumerate(ends.tolist()):
            start, stop = max(first, begin), min(first + count, end)
            if start < stop:
                lead = min((first - start) % batch_size, stop - start)
                yield Part(group, start - begin, stop - begin, lead)
            begin = end


def sample_order(count: int, key: int | None) -> Positions:
    """The order of a group's samples."""
    places = np.arange(count)
    return places if key is None else Shuffled(count, key).at(places)


def _bounds(ends: Positions, interleave: int) -> list[int]:
    """Where each group begins, and the last one ends."""
    files, bounds, before = len(ends), [0], 0
    enough = min(_ENOUGH, int(ends[-1]) // _FEWEST) if files else 0
    while bounds[-1] < files:
        filled = int(np.searchsorted(ends, before + enough)) + 1
        bounds.append(min(max(filled, bounds[-1] + interleave), files))
        before = int(ends[bounds[-1] - 1])
    return bounds
