"""Samplers of torch and of users, with the order that torch gives them."""

from __future__ import annotations

import itertools
import threading
from collections import Counter

import pytest

from tests.torch_front.datasets import Endless, Numbers, Recorded, identity, numbers, values

torch = pytest.importorskip("torch", reason="torch is not installed")
data = torch.utils.data

COUNT = 20


def seeded(seed=5):
    return torch.Generator().manual_seed(seed)


WEIGHTS = [float(index % 4) for index in range(COUNT)]

SAMPLERS = {
    "Sequential": lambda: data.SequentialSampler(Numbers(COUNT)),
    "Random": lambda: data.RandomSampler(Numbers(COUNT)),
    "Random with a generator": lambda: data.RandomSampler(Numbers(COUNT), generator=seeded()),
    "Random with replacement": lambda: data.RandomSampler(Numbers(COUNT), replacement=True),
    "Random with replacement and a count": lambda: data.RandomSampler(Numbers(COUNT), True, 50),
    "Random with replacement and a generator": lambda: data.RandomSampler(Numbers(COUNT), True, 40, seeded()),
    "Random with fewer samples": lambda: data.RandomSampler(Numbers(COUNT), num_samples=7),
    "Random with more samples": lambda: data.RandomSampler(Numbers(COUNT), num_samples=47),
    "SubsetRandom": lambda: data.SubsetRandomSampler([3, 1, 4, 15, 9]),
    "SubsetRandom with a generator": lambda: data.SubsetRandomSampler([3, 1, 4, 15, 9], generator=seeded()),
    "WeightedRandom": lambda: data.WeightedRandomSampler(WEIGHTS, 25),
    "WeightedRandom without replacement": lambda: data.WeightedRandomSampler(WEIGHTS, 15, replacement=False),
    "WeightedRandom with a generator": lambda: data.WeightedRandomSampler(WEIGHTS, 25, generator=seeded()),
    "Distributed, rank 0": lambda: data.DistributedSampler(Numbers(COUNT), 3, 0),
    "Distributed, rank 2": lambda: data.DistributedSampler(Numbers(COUNT), 3, 2),
    "Distributed in order": lambda: data.DistributedSampler(Numbers(COUNT), 3, 1, shuffle=False),
    "Distributed with drop_last": lambda: data.DistributedSampler(Numbers(COUNT), 3, 1, drop_last=True, seed=4),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_sampler_of_torch_gives_its_order(loader_class, num_workers, name):
    def run(kind, workers):
        torch.manual_seed(17)
        loader = kind(Numbers(COUNT), batch_size=4, sampler=SAMPLERS[name](), num_workers=workers)
        epochs = [values(loader), values(loader)]
        return epochs, torch.get_rng_state().tolist()

    assert run(loader_class, num_workers) == run(data.DataLoader, num_workers)


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_sampler_of_torch_in_a_batch_sampler_gives_its_order(loader_class, name):
    def run(kind):
        torch.manual_seed(17)
        sampler = data.BatchSampler(SAMPLERS[name](), 3, drop_last=True)
        loader = kind(Numbers(COUNT), batch_sampler=sampler, num_workers=1)
        return values(loader), len(loader), torch.get_rng_state().tolist()

    assert run(loader_class) == run(data.DataLoader)


def test_set_epoch_gives_another_order(loader_class, num_workers):
    sampler = data.DistributedSampler(Numbers(COUNT), 2, 0, seed=3)
    loader = loader_class(Numbers(COUNT), batch_size=4, sampler=sampler, num_workers=num_workers)
    for epoch in [0, 1, 1, 5]:
        sampler.set_epoch(epoch)
        order = torch.randperm(COUNT, generator=seeded(3 + epoch)).tolist()
        assert numbers(loader) == order[0::2]


def test_set_epoch_with_persistent_workers(loader_class):
    sampler = data.DistributedSampler(Numbers(COUNT), 2, 1)
    loader = loader_class(Numbers(COUNT), sampler=sampler, num_workers=2, persistent_workers=True)
    for epoch in [0, 1, 2]:
        sampler.set_epoch(epoch)
        assert numbers(loader) == torch.randperm(COUNT, generator=seeded(epoch)).tolist()[1::2]


def test_ranks_share_the_samples(loader_class, num_workers):
    found = []
    for rank in range(4):
        sampler = data.DistributedSampler(Numbers(COUNT), 4, rank)
        found += numbers(loader_class(Numbers(COUNT), batch_size=2, sampler=sampler, num_workers=num_workers))
    assert Counter(found) == Counter(range(COUNT))


class Eager(data.Sampler):
    """Draws its order when it is iterated, not with the first index."""

    def __init__(self, count):
        self.count = count
        self.calls = 0

    def __len__(self):
        return self.count

    def __iter__(self):
        self.calls += 1
        return iter(torch.randperm(self.count).tolist())


@pytest.mark.parametrize("persistent", [False, True], ids=["fresh", "persistent"])
def test_a_sampler_that_draws_when_iterated_gives_the_order_of_torch(loader_class, num_workers, persistent):
    if persistent and not num_workers:
        pytest.skip("there are no workers")

    def run(kind):
        torch.manual_seed(3)
        loader = kind(
            Numbers(8), batch_size=None, sampler=Eager(8), num_workers=num_workers, persistent_workers=persistent
        )
        return [list(loader) for _ in range(3)]

    assert run(loader_class) == run(data.DataLoader)


class Lazy(Eager):
    """Draws its order with the first index."""

    def __iter__(self):
        self.calls += 1
        yield from torch.randperm(self.count).tolist()


def test_a_sampler_that_draws_with_the_first_index_gives_the_order_of_torch(loader_class, num_workers):
    def run(kind):
        torch.manual_seed(3)
        loader = kind(Numbers(8), batch_size=3, sampler=Lazy(8), num_workers=num_workers)
        return [values(loader) for _ in range(3)]

    assert run(loader_class) == run(data.DataLoader)


class Drawing(Lazy):
    """Draws each index when asked for it, from the global generator."""

    def __iter__(self):
        for _ in range(self.count):
            yield int(torch.randint(8, ()))


def test_a_sampler_that_draws_index_by_index_gives_the_order_of_torch(loader_class, num_workers):
    def run(kind):
        torch.manual_seed(3)
        loader = kind(Numbers(8), batch_size=2, sampler=Drawing(9), num_workers=num_workers)
        return [values(loader) for _ in range(2)], torch.get_rng_state().tolist()

    assert run(loader_class) == run(data.DataLoader)


class Bucketed:
    """A batch sampler of the user's, which is no class of torch's."""

    def __init__(self):
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return 3

    def __iter__(self):
        for size in range(1, 4):
            yield [self.epoch] * size


def test_a_batch_sampler_of_the_users(loader_class, num_workers):
    sampler = Bucketed()
    loader = loader_class(Numbers(), batch_sampler=sampler, num_workers=num_workers)
    assert len(loader) == 3
    for epoch in [0, 4]:
        sampler.set_epoch(epoch)
        assert values(loader) == [[epoch], [epoch] * 2, [epoch] * 3]


def test_an_endless_sampler_with_islice(loader_class, num_workers):
    loader = loader_class(Numbers(3), batch_size=2, sampler=Endless(3), num_workers=num_workers)
    for _ in range(2):
        assert values(itertools.islice(loader, 4)) == [[0, 1], [2, 0], [1, 2], [0, 1]]


def test_an_endless_batch_sampler_with_islice(loader_class, num_workers):
    class Batches:
        def __iter__(self):
            return ([number % 5, 0] for number in itertools.count())

    loader = loader_class(Numbers(5), batch_sampler=Batches(), num_workers=num_workers)
    assert values(itertools.islice(loader, 7)) == [[number % 5, 0] for number in range(7)]


def test_a_sampler_that_learns_from_the_loop(loader_class):
    """Inline the sampler is asked only when the batch is, so it can react to the last one."""

    class Adaptive:
        wanted = 0

        def __iter__(self):
            for _ in range(4):
                yield self.wanted

    sampler = Adaptive()
    found = []
    for batch in loader_class(Numbers(), sampler=sampler):
        found += batch.tolist()
        sampler.wanted = found[-1] + 2
    assert found == [0, 2, 4, 6]


def test_a_sampler_with_a_record_of_what_it_gave(loader_class, num_workers):
    """As Lightning's prediction loop reads after each batch."""

    class Remembering(data.BatchSampler):
        def __iter__(self):
            self.seen = []
            for batch in super().__iter__():
                self.seen.append(batch)
                yield batch

    sampler = Remembering(data.SequentialSampler(range(6)), 2, False)
    loader = loader_class(Numbers(6), batch_sampler=sampler, num_workers=num_workers)
    for _ in range(2):
        for position, batch in enumerate(loader):
            assert sampler.seen[position] == batch.tolist()
        assert sampler.seen == [[0, 1], [2, 3], [4, 5]]


def test_a_batch_sampler_of_torchs_made_by_the_user(loader_class, num_workers):
    sampler = data.BatchSampler(range(7), batch_size=3, drop_last=False)
    loader = loader_class(Numbers(), batch_sampler=sampler, num_workers=num_workers)
    assert loader.batch_sampler is sampler
    assert values(loader) == [[0, 1, 2], [3, 4, 5], [6]]


def test_a_sampler_changed_in_place_counts_from_the_next_epoch(loader_class, num_workers):
    indices = [1, 2, 3]
    loader = loader_class(Numbers(), batch_size=2, sampler=indices, num_workers=num_workers)
    assert values(loader) == [[1, 2], [3]]
    indices[:] = [7, 8]
    assert values(loader) == [[7, 8]]


def test_a_generator_shared_by_sampler_and_loader(loader_class, num_workers):
    def run(kind):
        generator = seeded()
        sampler = data.RandomSampler(Numbers(COUNT), generator=generator)
        loader = kind(Numbers(COUNT), 4, sampler=sampler, generator=generator, num_workers=num_workers)
        return [values(loader) for _ in range(2)], generator.get_state().tolist()

    assert run(loader_class) == run(data.DataLoader)


def test_a_sampler_is_asked_in_the_training_process(loader_class, num_workers):
    sampler = Recorded([1, 0])
    assert values(loader_class(Numbers(), sampler=sampler, num_workers=num_workers)) == [[1], [0]]
    assert [entry for entry in sampler.log if isinstance(entry, int)] == [1, 0]


def test_a_sampler_is_asked_in_the_training_thread(loader_class, num_workers):
    """A sampler may use what is bound to the thread, a database for instance."""

    class Where:
        def __iter__(self):
            for _ in range(9):
                yield threading.get_ident()

    class Same(Numbers):
        def __getitem__(self, index):
            return index

    loader = loader_class(Same(), batch_size=None, sampler=Where(), num_workers=num_workers, collate_fn=identity)
    assert list(loader) == [threading.get_ident()] * 9


class Restarting:
    """An iterator that begins anew whenever somebody asks it for an iterator, as Lightning's is."""

    def __init__(self, count):
        self.count = count

    def __iter__(self):
        self.next = 0
        return self

    def __next__(self):
        if self.next >= self.count:
            raise StopIteration
        self.next += 1
        return [self.next - 1]

    def __len__(self):
        return self.count


def test_a_sampler_that_begins_anew_when_asked_for_an_iterator(loader_class, num_workers):
    loader = loader_class(Numbers(9), batch_sampler=Restarting(9), num_workers=num_workers)
    assert [values(loader) for _ in range(2)] == [[[n] for n in range(9)]] * 2


def test_such_a_sampler_is_resumed(our_class, num_workers):
    loader = our_class(Numbers(9), batch_sampler=Restarting(9), num_workers=num_workers)
    iterator = iter(loader)
    assert [next(iterator).tolist() for _ in range(4)] == [[0], [1], [2], [3]]
    again = our_class(Numbers(9), batch_sampler=Restarting(9), num_workers=num_workers)
    again.load_state_dict(loader.state_dict())
    assert values(again) == [[4], [5], [6], [7], [8]]
