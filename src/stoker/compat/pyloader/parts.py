"""PyLoader's classes to inherit from: how a chunk file is read, how a batch is encoded, and how it is collated."""

from __future__ import annotations

import operator
from typing import Any

from stoker.compat.arguments import check_flag, checked_count


class DataReader:
    """Reads chunk files. A batch holds samples of one chunk only.

    Args:
        batch_size: The number of samples in a batch. The last batch of a chunk may have fewer.
        shuffle: Shuffle the samples within a chunk, in another order each epoch.
        random_seed: Seeds that order, together with the epoch and the name of the file.
    """

    def __init__(self, batch_size: int = 4, shuffle: bool = False, random_seed: int = 42) -> None:
        check_flag("shuffle", shuffle)
        self.batch_size = checked_count("batch_size", batch_size)
        self.shuffle = shuffle
        self.random_seed = checked_seed(random_seed)

    def read_file(self, path: str) -> tuple[dict[str, list[Any]], int]:
        """Override it: returns the samples of a file, as a list for each key, and how many there are."""
        raise NotImplementedError(f"{type(self).__name__} has no read_file")


class Dataset:
    """Turns raw samples into numbers."""

    def batch_encode(self, batch_data: dict[str, list[Any]]) -> dict[str, list[Any]]:
        """Override it: encodes a batch as ``read_file`` returned it."""
        raise NotImplementedError(f"{type(self).__name__} has no batch_encode")


class DataCollator:
    """Turns an encoded batch into arrays or tensors."""

    def collate_batch(self, batch_data: dict[str, list[Any]]) -> dict[str, Any]:
        """Override it: returns what ``batch_encode`` returned, as a dict of arrays or tensors."""
        raise NotImplementedError(f"{type(self).__name__} has no collate_batch")


def checked_seed(value: Any) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"random_seed={value!r}: pass a whole number")
    return operator.index(value)
