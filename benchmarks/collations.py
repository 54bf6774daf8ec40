"""Ways from samples to a batch: the columns that the limit stacks, and functions that people pass as collate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Samples = list[Any]
Columns = Callable[[Samples], list[Sequence[Any]]]  # what the limit stacks of the samples of a batch


# How the limit takes them apart.
def bare(samples: Samples) -> list[Sequence[Any]]:
    return [samples]


def zipped(samples: Samples) -> list[Sequence[Any]]:
    return list(zip(*samples, strict=True))


def by_key(samples: Samples) -> list[Sequence[Any]]:
    return [[sample[key] for sample in samples] for key in samples[0]]


def by_field(samples: Samples) -> list[Sequence[Any]]:
    return [[sample.x for sample in samples], [sample.y for sample in samples]]


def by_path(samples: Samples) -> list[Sequence[Any]]:
    inner = [sample["in"] for sample in samples]
    return [*by_key(inner), [sample["y"] for sample in samples]]


# How a batch is made of them where that is not left to the loader.
def as_they_are(samples: Samples) -> Samples:
    return samples


def filled_up(samples: Samples) -> Any:
    """As people pad with torch."""
    import torch
    from torch.nn.utils.rnn import pad_sequence

    arrays, numbers = zip(*samples, strict=True)
    return pad_sequence([torch.from_numpy(array) for array in arrays], batch_first=True), torch.tensor(numbers)


def stacked(samples: Samples) -> Any:
    """As people stack with torch."""
    import torch

    tensors, numbers = zip(*samples, strict=True)
    return torch.stack(tensors), torch.tensor(numbers)


def without_missing(samples: Samples) -> Any:
    """As people leave out samples that could not be read."""
    from torch.utils.data import default_collate

    return default_collate([sample for sample in samples if sample is not None])
