"""The same seed gives the same order as torch does, and leaves the random generators where torch leaves them."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.torch_front.datasets import Numbers, Stream, identity, numbers, values

torch = pytest.importorskip("torch", reason="torch is not installed")
data = torch.utils.data

COUNT = 12


def a_seed(generator=None):
    """What torch draws wherever it needs a seed."""
    return torch.empty((), dtype=torch.int64).random_(generator=generator).item()


def permutation(seed):
    return torch.randperm(COUNT, generator=torch.Generator().manual_seed(seed)).tolist()


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(1234)


def expected_epochs(epochs, persistent=False):
    """Each iterator draws a seed for its workers, then the sampler one for its order; living workers keep theirs."""
    with torch.random.fork_rng():
        orders = []
        for epoch in range(epochs):
            if epoch == 0 or not persistent:
                a_seed()
            orders.append(permutation(a_seed()))
        return orders, torch.get_rng_state()


@pytest.mark.parametrize("epochs", [1, 3])
def test_the_global_seed_gives_the_order(loader_class, num_workers, epochs):
    orders, after = expected_epochs(epochs)
    loader = loader_class(Numbers(COUNT), batch_size=5, shuffle=True, num_workers=num_workers)
    assert [numbers(loader) for _ in range(epochs)] == orders
    assert torch.equal(torch.get_rng_state(), after)


def test_persistent_workers_draw_their_seed_but_once(loader_class):
    orders, after = expected_epochs(3, persistent=True)
    loader = loader_class(Numbers(COUNT), batch_size=5, shuffle=True, num_workers=2, persistent_workers=True)
    assert [numbers(loader) for _ in range(3)] == orders
    assert torch.equal(torch.get_rng_state(), after)


def test_making_a_loader_draws_nothing(loader_class, num_workers):
    before = torch.get_rng_state()
    loader_class(Numbers(COUNT), shuffle=True, num_workers=num_workers)
    assert torch.equal(torch.get_rng_state(), before)


def test_inline_the_order_is_drawn_with_the_first_batch(loader_class):
    with torch.random.fork_rng():
        a_seed()
        after_iter = torch.get_rng_state()
        a_seed()
        after_next = torch.get_rng_state()
    iterator = iter(loader_class(Numbers(COUNT), shuffle=True))
    assert torch.equal(torch.get_rng_state(), after_iter)
    next(iterator)
    assert torch.equal(torch.get_rng_state(), after_next)
    list(iterator)
    assert torch.equal(torch.get_rng_state(), after_next)


def test_with_workers_the_order_is_drawn_by_iter(loader_class):
    with torch.random.fork_rng():
        a_seed(), a_seed()
        after = torch.get_rng_state()
    iterator = iter(loader_class(Numbers(COUNT), shuffle=True, num_workers=2))
    assert torch.equal(torch.get_rng_state(), after)
    list(iterator)
    assert torch.equal(torch.get_rng_state(), after)


@pytest.mark.parametrize("dataset", [Numbers(COUNT), Stream(COUNT)], ids=["map", "stream"])
def test_without_shuffle_one_seed_is_drawn_for_each_iterator(loader_class, num_workers, dataset):
    with torch.random.fork_rng():
        a_seed()
        once = torch.get_rng_state()
        a_seed()
        twice = torch.get_rng_state()
    loader = loader_class(dataset, num_workers=num_workers)
    list(loader)
    assert torch.equal(torch.get_rng_state(), once)
    list(loader)
    assert torch.equal(torch.get_rng_state(), twice)


def test_a_generator_gives_the_order_and_the_seed_of_workers(loader_class, num_workers):
    expected, given = torch.Generator().manual_seed(7), torch.Generator().manual_seed(7)
    before = torch.get_rng_state()
    loader = loader_class(Numbers(COUNT), batch_size=5, shuffle=True, generator=given, num_workers=num_workers)
    for _ in range(3):
        a_seed(expected)
        order = torch.randperm(COUNT, generator=expected).tolist()
        torch.randperm(COUNT, generator=expected)  # of which a sampler takes the remainder: nothing
        assert numbers(loader) == order
        assert torch.equal(given.get_state(), expected.get_state())
    assert torch.equal(torch.get_rng_state(), before)


def test_two_loaders_may_share_a_generator(loader_class, num_workers):
    def run(kind):
        generator = torch.Generator().manual_seed(3)
        one = kind(Numbers(COUNT), shuffle=True, generator=generator, num_workers=num_workers)
        two = kind(Numbers(COUNT), shuffle=True, generator=generator, num_workers=num_workers)
        return [numbers(loader) for loader in (one, two, one)]

    assert run(loader_class) == run(data.DataLoader)


def test_a_generator_set_later_seeds_the_workers_only(loader_class, num_workers):
    generator = torch.Generator().manual_seed(7)
    loader = loader_class(Numbers(COUNT), batch_size=5, shuffle=True, num_workers=num_workers)
    loader.generator = generator
    with torch.random.fork_rng():
        order = permutation(a_seed())
    assert numbers(loader) == order
    expected = torch.Generator().manual_seed(7)
    a_seed(expected)
    assert torch.equal(generator.get_state(), expected.get_state())


def test_a_seed_set_between_epochs_gives_the_epoch_again(loader_class, num_workers):
    loader = loader_class(Numbers(COUNT), batch_size=5, shuffle=True, num_workers=num_workers)
    epochs = []
    for _ in range(2):
        torch.manual_seed(99)
        epochs.append(values(loader))
    assert epochs[0] == epochs[1]


def test_draws_in_the_training_loop_do_not_change_the_running_epoch(loader_class, num_workers):
    (order,), _ = expected_epochs(1)
    taken = []
    for batch in loader_class(Numbers(COUNT), batch_size=2, shuffle=True, num_workers=num_workers):
        torch.rand(3)
        taken += batch.tolist()
    assert taken == order


def test_inline_a_dataset_draws_from_the_streams_of_this_process(loader_class):
    class Augmented(Numbers):
        def __getitem__(self, index):
            return torch.rand(()).item()

    with torch.random.fork_rng():
        a_seed()
        expected = [torch.rand(()).item() for _ in range(4)]
    assert list(loader_class(Augmented(4), batch_size=None)) == expected


def test_python_and_numpy_streams_of_this_process_are_left_alone(loader_class, num_workers):
    random.seed(1)
    np.random.seed(1)
    before = random.getstate(), np.random.get_state()[1].tolist()
    list(loader_class(Numbers(COUNT), shuffle=True, num_workers=num_workers))
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before


def test_a_broken_off_epoch_has_drawn_as_much_as_a_whole_one(loader_class, num_workers):
    orders, _ = expected_epochs(2)
    loader = loader_class(Numbers(COUNT), batch_size=4, shuffle=True, num_workers=num_workers)
    for batch in loader:
        assert batch.tolist() == orders[0][:4]
        break
    assert numbers(loader) == orders[1]


@pytest.mark.parametrize("count", [1, 2, 33, 1000])
def test_the_order_of_datasets_of_other_sizes(loader_class, num_workers, count):
    def run(kind):
        torch.manual_seed(5)
        loader = kind(Numbers(count), batch_size=7, shuffle=True, collate_fn=identity, num_workers=num_workers)
        return list(loader)

    assert run(loader_class) == run(data.DataLoader)
