"""``Cache``: samples are read once, kept on disk, and read from there for the next epochs."""

from __future__ import annotations

import math
import operator
import os
from dataclasses import dataclass
from typing import Any, Literal

from stoker.plan import sample_seed

Codec = Literal["safe", "pickle"]  # how samples are written down

_CODECS = ("safe", "pickle")


@dataclass(frozen=True)
class Cache:
    """Keeps samples on disk, for all workers and consumers of a machine, and for the next run.

    The first time a sample is asked for, it is read from the dataset and kept. From then on it comes from the cache:
    mapped, and copied once, into its batch.

    Args:
        path: A folder of its own, which is made if it is not there.
        refresh_every: The samples are made anew every so many epochs, so that augmentation stays alive; None: never.
        max_bytes: Of the folder; what does not fit is read from the dataset as without a cache. None: any.
        version: Part of what the cache is known by, beside the dataset's class and arguments: change it when the
            dataset's code or files have changed.
        codec: "safe": dicts, lists and tuples of arrays, numbers, strings, bytes and None; no code is ever run by
            reading it. "pickle": any sample, for those who trust whoever can write to the folder.

    Example:
        >>> import tempfile, numpy as np, stoker
        >>> cache = stoker.Cache(tempfile.mkdtemp(), refresh_every=4)
        >>> with stoker.Loader(np.arange(6), batch_size=3, cache=cache) as loader:
        ...     [batch.tolist() for epoch in range(2) for batch in loader]
        [[0, 1, 2], [3, 4, 5], [0, 1, 2], [3, 4, 5]]
    """

    path: str | os.PathLike[str]
    refresh_every: int | float | None = None
    max_bytes: int | None = None
    version: str | int = ""
    codec: Codec = "safe"

    def __post_init__(self) -> None:
        # Now, since the program may change its folder; and as plain values, so that it pickles and prints alike.
        object.__setattr__(self, "path", os.path.abspath(os.fspath(self.path)))
        object.__setattr__(self, "refresh_every", _checked_refresh(self.refresh_every))
        object.__setattr__(self, "max_bytes", _checked_bytes(self.max_bytes))
        if not isinstance(self.version, str | int):
            raise TypeError(f"Cache(version={self.version!r}): write a string or a number")
        if self.codec not in _CODECS:
            raise ValueError(f"Cache(codec={self.codec!r}): write one of {', '.join(map(repr, _CODECS))}")

    def first_epoch(self, epoch: int) -> int:
        """The epoch for which the samples of this one are made."""
        return 0 if self.refresh_every is None else epoch - epoch % int(self.refresh_every)

    def seed(self, seed: int, epoch: int, index: int) -> int:
        """For what is random in a sample. It follows from the generation, so a sample that is made again is the same.

        Without refreshing, also for any seed of the loader: the cache is kept for all of them.
        """
        if self.refresh_every is None:
            return sample_seed(0, 0, index)
        return sample_seed(seed, self.first_epoch(epoch), index)

    def generation(self, seed: int, epoch: int) -> str:
        """The name of the generation of that epoch."""
        return "all" if self.refresh_every is None else f"seed{seed}-epoch{self.first_epoch(epoch)}"


def _checked_refresh(epochs: Any) -> int | None:
    if epochs is None or epochs == math.inf:
        return None
    if isinstance(epochs, bool) or not hasattr(epochs, "__index__"):
        raise TypeError(f"Cache(refresh_every={epochs!r}): write a number of epochs, or None for never")
    if operator.index(epochs) < 2:
        raise ValueError(
            f"Cache(refresh_every={epochs}): what is made anew each epoch need not be kept. Write 2 or more epochs, "
            f"None for never, or leave the cache out"
        )
    return operator.index(epochs)


def _checked_bytes(limit: Any) -> int | None:
    if limit is None or limit == math.inf:
        return None
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not limit >= 0:
        raise ValueError(f"Cache(max_bytes={limit!r}): write a number of bytes, as in 50e9, or None for any")
    return int(limit)
