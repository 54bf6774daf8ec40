"""The drop-in has the types of torch's own loader: generic in the sample, and a batch may be anything."""

import itertools
from collections.abc import Iterator
from typing import Any, assert_type

import torch
import torch.utils.data

from stoker.torch import DataLoader


class Squares(torch.utils.data.Dataset[int]):
    def __getitem__(self, index: int) -> int:
        return index**2

    def __len__(self) -> int:
        return 4


class Endless(torch.utils.data.IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        return itertools.count()


def collate(samples: list[int]) -> torch.Tensor:
    return torch.tensor(samples)


def train(loader: torch.utils.data.DataLoader[int]) -> None:
    for batch in loader:
        assert_type(batch, Any)


loader = DataLoader(Squares(), batch_size=2, shuffle=True, num_workers=2, collate_fn=collate)
assert_type(loader, DataLoader[int])
assert_type(loader.batch_size, int | None)
assert_type(loader.state_dict(), dict[str, Any])
train(loader)
for batch in loader:
    assert_type(batch, Any)
assert_type(DataLoader(Endless()), DataLoader[int])
assert_type(DataLoader([1, 2, 3]), DataLoader[int])
subset: DataLoader[int] = DataLoader(torch.utils.data.Subset(Squares(), [1]))
given: DataLoader[Any] = DataLoader(torch.utils.data.TensorDataset(torch.zeros(3)), 2, seed=1)
