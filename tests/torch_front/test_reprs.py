"""``repr`` of the drop-in: what it is, as far as that is known without starting anything."""

from __future__ import annotations

import pytest
import torch
from torch.utils import data

from stoker import Ray
from stoker.torch import DataLoader


class Silent:
    """A sampler that fails when it is asked for its length."""

    def __iter__(self):
        return iter([0])

    def __len__(self):
        raise AttributeError("no length yet")


class Counting(data.IterableDataset):
    def __iter__(self):
        return iter(range(3))

    def __len__(self):
        raise AssertionError("asked, torch would compare it with what comes")


@pytest.mark.parametrize(
    ("dataset", "arguments", "shown"),
    [
        (
            data.TensorDataset(torch.zeros(10)),
            {"batch_size": 4},
            "TensorDataset, batch_size=4, len=3, epoch=0, num_workers=0",
        ),
        ([1, 2], {"batch_sampler": [[0], [1]]}, "list, batch_size=None, len=2, epoch=0, num_workers=0"),
        ([1, 2], {"sampler": Silent()}, "list, batch_size=1, epoch=0, num_workers=0"),
        (Counting(), {}, "Counting, batch_size=1, epoch=0, num_workers=0"),
        ([1, 2], {"workers": Ray(2)}, "list, batch_size=1, len=2, epoch=0, workers=Ray(n=2)"),
    ],
)
def test_a_loader_tells_what_it_is(dataset, arguments, shown):
    assert repr(DataLoader(dataset, **arguments)) == f"DataLoader({shown})"


def test_the_epoch_is_the_one_that_runs():
    loader = DataLoader([1, 2])
    list(loader)
    list(loader)
    assert "epoch=1" in repr(loader)
