"""Quick batches are asked for in bundles, and nobody notices but for the speed."""

from __future__ import annotations

import itertools
import os
import random
import signal

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
data = torch.utils.data

from stoker.torch import DataLoader  # noqa: E402
from stoker.torch.pacing import most_at_a_time, next_size  # noqa: E402

COUNT = 1500  # samples: enough batches for bundles to grow


class Noisy(data.Dataset):
    """Quick to read, with random numbers of each kind."""

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        return index, random.random(), np.random.rand(), torch.rand(1)


class Uneven(data.IterableDataset):
    """The second worker has more than the first."""

    def __iter__(self):
        info = data.get_worker_info()
        return iter([(info.id, k) for k in range(300 + 250 * info.id)])


DATASETS = {"map": (Noisy, {"shuffle": True}), "stream": (Uneven, {})}


def batches(loader):
    return [[part.tolist() for part in batch] for batch in loader]


def all_of(cls, kind, **options):
    dataset, more = DATASETS[kind]
    torch.manual_seed(4)
    return batches(cls(dataset(), batch_size=3, num_workers=2, **more, **options))


@pytest.mark.parametrize("kind", DATASETS)
def test_the_batches_and_their_random_numbers_are_those_of_torch(kind):
    assert all_of(DataLoader, kind) == all_of(data.DataLoader, kind)


class Again(data.Dataset):
    """The same few samples over and over, which can be changed."""

    def __init__(self, make):
        self.samples = [make(k) for k in range(8)]

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        return self.samples[index % 8]


@pytest.mark.parametrize("make", [lambda k: {"a": {k}}, lambda k: {k}, lambda k: [np.full(3, k), {"a": [k]}]])
def test_batches_of_a_bundle_have_no_objects_in_common(make):
    made = list(DataLoader(Again(make), batch_size=8, num_workers=2, collate_fn=list))
    assert len({id(sample) for batch in made for sample in batch}) == COUNT


@pytest.mark.parametrize("kind", DATASETS)
@pytest.mark.parametrize("steps", [1, 60, 177])
def test_a_state_is_of_the_batch_and_not_of_the_bundle(kind, steps):
    dataset, more = DATASETS[kind]
    torch.manual_seed(4)
    loader = DataLoader(dataset(), batch_size=3, num_workers=2, **more)
    iterator = iter(loader)
    first = batches(itertools.islice(iterator, steps))
    state = loader.state_dict()
    again = DataLoader(dataset(), batch_size=3, num_workers=2, **more)
    again.load_state_dict(state)
    found = first + batches(again)
    assert [batch[:1] for batch in found] == [batch[:1] for batch in all_of(DataLoader, kind)]
    assert len(found) == len(all_of(DataLoader, kind))


@pytest.mark.parametrize("kind", DATASETS)
def test_a_worker_that_is_killed_within_a_bundle_loses_nothing(kind):
    dataset, more = DATASETS[kind]
    torch.manual_seed(4)
    iterator = iter(DataLoader(dataset(), batch_size=3, num_workers=2, **more))
    found = batches(itertools.islice(iterator, 100))
    os.kill(iterator._workers[1].pid, signal.SIGKILL)
    found += batches(iterator)
    wanted = all_of(data.DataLoader, kind)
    assert [batch[0] for batch in found] == [batch[0] for batch in wanted]


class Torn(data.Dataset):
    """One batch, which is made in a bundle by then, has tensors of two shapes."""

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        return torch.zeros(2 + (index == 1201)), index


def told(loader):
    """What each step of a loop gives, errors included."""
    steps, iterator = [], iter(loader)
    while True:
        try:
            steps.append([part.tolist() for part in next(iterator)])
        except StopIteration:
            return steps
        except RuntimeError as error:
            steps.append([line for line in str(error).splitlines() if not line.startswith(" ")])


def test_a_batch_that_does_not_fit_together_is_torchs_error_and_no_other_batch_is_lost():
    found, wanted = (told(cls(Torn(), batch_size=3, num_workers=2)) for cls in (DataLoader, data.DataLoader))
    assert found == wanted
    assert sum("stack expects each tensor to be equal size" in str(step) for step in found) == 1


def test_bundles_grow_while_batches_are_quick_and_small():
    small, large = torch.zeros(10), torch.zeros(2**20)
    assert next_size(1, 16, 1e-5, small) == 2
    assert next_size(8, 16, 1e-5, small) == 16
    assert next_size(16, 16, 1e-5, small) == 16
    assert next_size(1, 16, 0.1, small) == 1, "slow"
    assert next_size(8, 16, 1e-3, small) == 3, "become slow"
    assert next_size(1, 16, 1e-5, {"x": [large]}) == 1, "large"
    assert next_size(1, 16, 1e-5, [large.numpy()]) == next_size(1, 16, 1e-5, bytes(large.nbytes)) == 1, "large"


def test_each_worker_has_several_bundles_in_an_epoch():
    assert most_at_a_time(10, 2) == 1
    assert most_at_a_time(64, 2) == 4
    assert most_at_a_time(10**6, 2) == most_at_a_time(None, 2) == 16


class Counted(data.Sampler):
    """Somebody's own, which must not be asked ahead."""

    asked = 0

    def __iter__(self):
        for index in range(COUNT):
            self.asked += 1
            yield index

    def __len__(self):
        return COUNT


def test_a_sampler_of_the_users_is_never_asked_for_more_than_torch_asks(loader_class):
    sampler = Counted()
    iterator = iter(loader_class(torch.arange(COUNT), batch_size=1, sampler=sampler, num_workers=2))
    for taken in range(200):
        assert sampler.asked <= 4 + taken
        next(iterator)
    assert sampler.asked == 204
