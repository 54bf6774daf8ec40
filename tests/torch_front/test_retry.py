"""``retry=`` of the drop-in: a sample that failed in a way that may pass is read again, and is the same sample then."""

from __future__ import annotations

import pickle
import random

import numpy as np
import pytest
import torch

import stoker
from stoker.torch import DataLoader, adopt

QUICK = stoker.Retry(3, backoff=0)


class Flaky(torch.utils.data.Dataset):
    """The first tries of some samples fail, after they have drawn random numbers."""

    def __init__(self, *, bad=(3, 4, 11), failures=2, error=OSError):
        self.bad, self.failures, self.error, self.tries = bad, failures, error, {}

    def __len__(self):
        return 20

    def __getitem__(self, index):
        drawn = random.random(), float(np.random.rand()), float(torch.rand(()))
        self.tries[index] = self.tries.get(index, 0) + 1
        if index in self.bad and self.tries[index] <= self.failures:
            raise self.error(f"no connection for {index}")
        return torch.tensor([index, *drawn], dtype=torch.float64)


class FlakyTogether(Flaky):
    def __getitems__(self, indices):
        return [self[index] for index in indices]


def stacked(samples):
    return torch.stack(samples)


def epoch(dataset, **options):
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    loader = DataLoader(dataset, **{"batch_size": 5, "shuffle": True, "retry": QUICK} | options)
    return torch.cat(list(loader)), loader.stats().retries


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("options", [{}, {"seed": 7}, {"collate_fn": stacked}], ids=["plain", "seed", "collate_fn"])
def test_samples_are_the_same_as_if_nothing_had_failed(num_workers, options):
    expected, _ = epoch(Flaky(bad=()), num_workers=num_workers, retry=0, **options)
    found, retries = epoch(Flaky(), num_workers=num_workers, **options)
    assert torch.equal(found, expected)
    assert retries == 6


@pytest.mark.parametrize("num_workers", [0, 1])
def test_single_samples_and_whole_calls_of_getitems_are_tried_again(num_workers):
    one_by_one = DataLoader(Flaky(), batch_size=None, num_workers=num_workers, retry=QUICK)
    assert [int(sample[0]) for sample in one_by_one] == list(range(20))
    found, retries = epoch(FlakyTogether(bad=(3,)), num_workers=num_workers)
    assert sorted(found[:, 0].tolist()) == list(range(20))
    assert retries == 2


@pytest.mark.parametrize("num_workers", [0, 1])
def test_after_the_last_try_the_error_is_raised_and_the_loop_may_go_on(num_workers):
    loader = DataLoader(Flaky(failures=9, bad=(3,)), batch_size=5, num_workers=num_workers, retry=stoker.Retry(2, 0))
    batches = iter(loader)
    with pytest.raises(OSError, match="no connection for 3") as raised:
        next(batches)
    assert "it was tried 3 times" in str(raised.value) + str(getattr(raised.value, "__notes__", ""))
    assert [int(batch[0, 0]) for batch in batches] == [5, 10, 15]
    assert loader.stats().retries == 2


@pytest.mark.parametrize("num_workers", [0, 1])
def test_other_errors_are_raised_at_once(num_workers):
    with pytest.raises(ValueError, match="no connection"):
        epoch(Flaky(error=ValueError), num_workers=num_workers)
    found, _ = epoch(Flaky(error=ValueError), num_workers=num_workers, retry=stoker.Retry(2, 0, on=ValueError))
    assert len(found) == 20


def test_a_loader_that_is_copied_or_adopted_tries_again_too():
    for loader in (
        pickle.loads(pickle.dumps(DataLoader(Flaky(), batch_size=5, retry=QUICK))),
        adopt(DataLoader(Flaky(), batch_size=5, retry=QUICK), seed=0),
        adopt(torch.utils.data.DataLoader(Flaky(), batch_size=5), retry=QUICK),
    ):
        assert len(torch.cat(list(loader))) == 20
        assert loader.stats().retries == 6


def test_wrong_values_are_refused():
    with pytest.raises(TypeError, match="pass a number of times"):
        DataLoader(Flaky(), retry="often")
    with pytest.raises(ValueError, match="from 0 to 100"):
        DataLoader(Flaky(), retry=-1)

    class Lines(torch.utils.data.IterableDataset):
        def __iter__(self):
            return iter(range(3))

    with pytest.raises(ValueError, match="with an IterableDataset"):
        DataLoader(Lines(), retry=1)
    assert len(list(DataLoader(Lines(), retry=0))) == 3
