"""``Cache``: samples are made once, kept on disk, and read from there in the next epochs."""

from __future__ import annotations

import math
import operator
import os
from dataclasses import dataclass
from typing import Any, Literal

from stoker.counts import BOOLS
from stoker.plan import sample_seed

Codec = Literal["safe", "pickle"]  # how samples are written down

_CODECS = ("safe", "pickle")


@dataclass(frozen=True)
class Cache:
    """Keeps finished samples on disk, for all workers and consumers of a machine, and for the next run.

    A sample is made by the dataset when it is needed for the first time, and stored. After that it is read from the
    cache, which is mapped into memory, and copied once, into its batch.

    Args:
        path: The folder of the cache. It is made if it does not exist, and must not hold other files.
        refresh_every: The number of epochs after which samples are made again, so that their augmentation changes.
            None: never.
        max_bytes: The largest size of the folder. Samples that do not fit are made by the dataset each time. None: no
            limit.
        version: A string or number that is part of the cache's identity, beside the class and the arguments of the
            dataset. Change it when the code or the files of the dataset have changed.
        codec: "safe": stores dicts, lists and tuples of arrays, numbers, strings, bytes and None; to read them never
            runs code. "pickle": stores any sample. Use it only if you trust everybody who can write to the folder.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument has a wrong value. The loader raises ``CacheError`` if the folder cannot be used.

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
            raise TypeError(f"Cache(version={self.version!r}): pass a string or a number")
        if self.codec not in _CODECS:
            raise ValueError(f"Cache(codec={self.codec!r}): pass one of {', '.join(map(repr, _CODECS))}")

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
    if isinstance(epochs, BOOLS) or not hasattr(epochs, "__index__"):
        raise TypeError(f"Cache(refresh_every={epochs!r}): pass a number of epochs, or None for never")
    if operator.index(epochs) < 2:
        raise ValueError(
            f"Cache(refresh_every={epochs}): samples that are made again in each epoch need not be kept. "
            f"Pass 2 or more epochs, None for never, or leave the cache out"
        )
    return operator.index(epochs)


def _checked_bytes(limit: Any) -> int | None:
    if limit is None or limit == math.inf:
        return None
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not limit >= 0:
        raise ValueError(f"Cache(max_bytes={limit!r}): pass a number of bytes, as in 50e9, or None for any")
    return int(limit)
