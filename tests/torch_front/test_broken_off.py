"""What an epoch that is not read to its end leaves to the next one."""

from __future__ import annotations

import itertools

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
data = torch.utils.data

from tests.torch_front.datasets import Numbers  # noqa: E402


def orders(cls, taken, **options):
    """Three epochs of which so many batches are taken, and the state of the generator after each."""
    generator = torch.Generator().manual_seed(3)
    loader = cls(Numbers(22), batch_size=4, generator=generator, num_workers=2, **options)
    found = []
    for _ in range(3):
        iterator = iter(loader)
        found.append([batch.tolist() for batch in itertools.islice(iterator, taken)])
        del iterator
        found.append(generator.get_state().tolist())
    return found


@pytest.mark.parametrize("taken", [0, 1, 2, 5, 6])
@pytest.mark.parametrize("drop_last", [False, True])
def test_the_next_order_is_torchs_wherever_the_loop_ended(taken, drop_last):
    """Also if it ended with the last batch, without a look at what comes after it, as Lightning's loops do."""
    from stoker.torch import DataLoader

    options = {"shuffle": True, "drop_last": drop_last}
    assert orders(DataLoader, taken, **options) == orders(data.DataLoader, taken, **options)


@pytest.mark.parametrize("taken", [1, 3, 6])
def test_with_persistent_workers_as_well(taken):
    from stoker.torch import DataLoader

    options = {"shuffle": True, "persistent_workers": True}
    assert orders(DataLoader, taken, **options) == orders(data.DataLoader, taken, **options)


def test_bundles_do_not_show_in_the_generator():
    from stoker.torch import DataLoader

    def state_after(cls, taken):
        generator = torch.Generator().manual_seed(3)
        sampler = data.RandomSampler(range(3000), replacement=True, generator=generator)
        iterator = iter(cls(Numbers(3000), batch_size=4, sampler=sampler, num_workers=2))
        for _ in itertools.islice(iterator, taken):
            pass
        return generator.get_state().tolist()

    for taken in (0, 3, 100, 500, 746, 750):
        assert state_after(DataLoader, taken) == state_after(data.DataLoader, taken), taken


class Wrapped:
    """A batch sampler within another, as Accelerate has it."""

    def __init__(self, batch_sampler):
        self.batch_sampler = batch_sampler

    def __iter__(self):
        return iter(self.batch_sampler)

    def __len__(self):
        return len(self.batch_sampler)


def test_a_generator_of_a_sampler_within_a_sampler_is_part_of_the_state(our_class):
    def make(seed):
        generator = torch.Generator().manual_seed(seed)
        inner = data.BatchSampler(data.RandomSampler(range(20), generator=generator), 3, False)
        return our_class(Numbers(20), batch_sampler=Wrapped(inner), num_workers=1)

    loader = make(1)
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    rest = [batch.tolist() for batch in iterator]
    again = make(2)
    again.load_state_dict(state)
    assert [batch.tolist() for batch in again] == rest


def test_the_epoch_of_a_distributed_sampler_is_part_of_the_state(our_class):
    def make():
        sampler = data.DistributedSampler(range(20), num_replicas=2, rank=0)
        return our_class(Numbers(20), batch_size=2, sampler=sampler, num_workers=1)

    loader = make()
    loader.sampler.set_epoch(5)
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    rest = [batch.tolist() for batch in iterator]
    again = make()
    again.load_state_dict(state)
    assert [batch.tolist() for batch in again] == rest
    assert again.sampler.epoch == 5
