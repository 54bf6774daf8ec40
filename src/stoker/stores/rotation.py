"""``Rotation``: each sample is made once and used several times within the epoch."""

from __future__ import annotations

import operator
import os
from dataclasses import dataclass
from typing import Any, Literal

from stoker.memory import anonymous_file, unnamed_file
from stoker.plan import sample_seed

Medium = Literal["memory", "disk"]

_MEDIA = ("memory", "disk")


@dataclass(frozen=True)
class Rotation:
    """Each sample is made once and delivered ``times`` times in an epoch, which is ``times`` as long.

    The samples are mixed with those that rotate at the same time, and none comes twice in a row where that can be
    helped. For training, where making a sample takes long and the dataset is too big for a ``Cache``.

    Args:
        times: Uses of each sample, 2 or more.
        medium: Where they are kept: "memory" or "disk".
        size: Samples that rotate at the same time, of each consumer; None: all of them.
        path: With "disk": the folder to use. The file has no name there, and is gone when the loader is.

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
        _check_count("times", self.times, 2, "how often each sample is used, 2 or more, or leave the rotation out")
        if self.size is not None:
            _check_count("size", self.size, 1, "how many samples rotate at the same time, or None for all")
        if self.medium not in _MEDIA:
            raise ValueError(f"Rotation(medium={self.medium!r}): write one of {', '.join(map(repr, _MEDIA))}")
        if (self.path is not None) != (self.medium == "disk"):
            raise ValueError(f'Rotation(medium={self.medium!r}, path={self.path!r}): write a path with "disk" only')
        if self.path is not None:
            object.__setattr__(self, "path", os.path.abspath(os.fsdecode(self.path)))
            if not os.path.isdir(self.path):
                raise ValueError(f"Rotation(path={self.path!r}): there is no such folder; make it, or write another")

    def seed(self, seed: int, epoch: int, index: int) -> int:
        """For what is random in a sample, so that one that is made again is the same."""
        return sample_seed(seed, epoch, index)

    def new_file(self) -> int:
        """A descriptor of the file that holds the samples."""
        return anonymous_file() if self.path is None else unnamed_file(str(self.path))


def _check_count(name: str, value: Any, least: int, write: str) -> None:
    if isinstance(value, bool) or not hasattr(value, "__index__") or operator.index(value) < least:
        raise ValueError(f"Rotation({name}={value!r}): write {write}")
