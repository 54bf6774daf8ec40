"""``Rotation``: each sample is made once and used several times within the epoch."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

from stoker.counts import checked_count
from stoker.memory import anonymous_file, unnamed_file
from stoker.plan import sample_seed

Medium = Literal["memory", "disk"]

_MEDIA = ("memory", "disk")


@dataclass(frozen=True)
class Rotation:
    """Makes each sample once and delivers it ``times`` times in an epoch, which becomes ``times`` as long.

    A sample is mixed with the others that rotate at the same time, and does not come twice in a row if that can be
    avoided. Use it for training when samples are slow to make and the dataset is too big for a ``Cache``.

    Args:
        times: The number of uses of each sample, 2 or more.
        medium: Where samples are kept meanwhile: "memory" or "disk".
        size: The number of samples that rotate at the same time, for each consumer. None: all of them.
        path: With medium="disk", the folder to use. The file has no name there, and is gone when the loader is closed.

    Raises:
        ValueError: An argument has a wrong value, or the folder does not exist.

    Example:
        >>> import numpy as np, stoker
        >>> rotation = stoker.Rotation(2, size=3)
        >>> with stoker.Loader(np.arange(6), batch_size=3, rotation=rotation) as loader:
        ...     [batch.tolist() for batch in loader]
        [[0, 1, 2], [0, 1, 2], [3, 4, 5], [3, 4, 5]]
    """

    times: int
    medium: Medium = "memory"
    size: int | None = None
    path: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        remedy = "how often each sample is used, 2 or more, or leave the rotation out"
        object.__setattr__(self, "times", checked_count("times", self.times, remedy, of="Rotation", least=2))
        if self.size is not None:
            remedy = "how many samples rotate at the same time, 1 or more, or None for all"
            object.__setattr__(self, "size", checked_count("size", self.size, remedy, of="Rotation"))
        if self.medium not in _MEDIA:
            raise ValueError(f"Rotation(medium={self.medium!r}): pass one of {', '.join(map(repr, _MEDIA))}")
        if (self.path is not None) != (self.medium == "disk"):
            raise ValueError(f'Rotation(medium={self.medium!r}, path={self.path!r}): pass a path with "disk" only')
        if self.path is not None:
            object.__setattr__(self, "path", os.path.abspath(os.fsdecode(self.path)))
            if not os.path.isdir(self.path):
                raise ValueError(f"Rotation(path={self.path!r}): there is no such folder; make it, or pass another")

    def seed(self, seed: int, epoch: int, index: int) -> int:
        """For what is random in a sample, so that one that is made again is the same."""
        return sample_seed(seed, epoch, index)

    def new_file(self) -> int:
        """A descriptor of the file that holds the samples."""
        return anonymous_file() if self.path is None else unnamed_file(str(self.path))
