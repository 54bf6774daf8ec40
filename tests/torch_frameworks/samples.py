"""Datasets whose samples tell who made them."""

from __future__ import annotations

import os

import torch
from torch.utils.data import Dataset, IterableDataset


class Numbers(Dataset):
    """Sample k is k, with the process that made it."""

    def __init__(self, length):
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        return {"x": torch.tensor([float(index)]), "pid": os.getpid()}


class Drawn(Numbers):
    """The same, with a random number of torch's generator."""

    def __getitem__(self, index):
        return {**super().__getitem__(index), "drawn": torch.rand(())}


class Echo(Dataset):
    """Gives back the index."""

    def __getitem__(self, index):
        return index


class Stream(IterableDataset):
    """The same numbers, as a stream; each worker gives its part."""

    def __init__(self, length):
        self.length = length

    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        first, step = (info.id, info.num_workers) if info else (0, 1)
        for number in range(first, self.length, step):
            yield {"x": torch.tensor([float(number)]), "pid": os.getpid()}


def numbers(batch):
    return [int(number) for number in batch["x"].flatten()]
