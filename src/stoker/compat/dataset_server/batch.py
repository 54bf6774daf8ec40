"""What happens to a dataset_server's batch in the consumer: it is measured, pinned, or left as it is."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import stoker


@dataclass(frozen=True)
class Limit:
    """Lets batches of up to so many bytes pass: those of arrays, tensors, strings and bytes, however nested."""

    nbytes: int

    def __call__(self, batch: Any) -> Any:
        found = sum(map(_nbytes, _leaves(batch)))
        if found > self.nbytes:
            raise ValueError(
                f"this batch has {found} bytes, more than max_minibatch_length={self.nbytes} allows: pass a larger "
                f"limit, None for none, or a smaller batch_size"
            )
        return batch


def unchanged(batch: Any) -> Any:
    return batch


def pinned(batch: Any) -> Any:
    """The batch with its tensors in pinned memory."""
    import torch

    return stoker.map_leaves(lambda leaf: leaf.pin_memory() if isinstance(leaf, torch.Tensor) else leaf, batch)


def _leaves(batch: Any) -> Iterator[Any]:
    if isinstance(batch, Mapping):
        batch = batch.values()
    elif dataclasses.is_dataclass(batch) and not isinstance(batch, type):
        batch = [getattr(batch, field.name) for field in dataclasses.fields(batch)]
    elif not isinstance(batch, list | tuple):
        yield batch
        return
    for value in batch:
        yield from _leaves(value)


def _nbytes(leaf: Any) -> int:
    if isinstance(leaf, str | bytes):
        return len(leaf if isinstance(leaf, bytes) else leaf.encode("utf-8", "surrogatepass"))
    return int(getattr(leaf, "nbytes", 0))
