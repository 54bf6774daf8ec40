"""Iterators: several at once, broken off, nested, in threads; and what is allowed with a loader that has not begun."""

from __future__ import annotations

import copy
import gc
import multiprocessing.connection
import os
import pickle
import threading
import weakref

import pytest

from tests.torch_front.datasets import Numbers, Scaled, Split, Stream, identity, numbers, values

torch = pytest.importorskip("torch", reason="torch is not installed")
data = torch.utils.data


def test_an_iterator_is_its_own_iterator(loader_class, num_workers):
    iterator = iter(loader_class(Numbers(3), num_workers=num_workers))
    assert iter(iterator) is iterator
    assert numbers(iterator) == [0, 1, 2]


def test_two_iterators_of_one_loader_do_not_disturb_each_other(loader_class, num_workers):
    loader = loader_class(Numbers(6), batch_size=2, num_workers=num_workers)
    one, two = iter(loader), iter(loader)
    found = [next(one).tolist(), next(two).tolist(), next(one).tolist(), next(two).tolist()]
    assert found == [[0, 1], [0, 1], [2, 3], [2, 3]]
    assert values(one) == values(two) == [[4, 5]]


def test_two_shuffled_iterators_have_orders_of_their_own(loader_class, num_workers):
    def run(kind):
        torch.manual_seed(8)
        loader = kind(Numbers(10), batch_size=2, shuffle=True, num_workers=num_workers)
        return [(a.tolist(), b.tolist()) for a, b in zip(loader, loader, strict=True)]

    assert run(loader_class) == run(data.DataLoader)


def test_a_loop_within_the_loop_over_the_same_loader(loader_class, num_workers):
    loader = loader_class(Numbers(3), num_workers=num_workers)
    found = [(int(outer), int(inner)) for outer in loader for inner in loader]
    assert found == [(a, b) for a in range(3) for b in range(3)]


def test_a_new_iterator_of_persistent_workers_takes_over_from_the_old(loader_class):
    loader = loader_class(Numbers(6), batch_size=2, num_workers=2, persistent_workers=True)
    first = iter(loader)
    next(first)
    assert values(iter(loader)) == [[0, 1], [2, 3], [4, 5]]


def test_two_loaders_at_once(loader_class, num_workers):
    one = loader_class(Numbers(4), num_workers=num_workers)
    two = loader_class(Stream(4), num_workers=min(num_workers, 1))
    assert [(int(a), int(b)) for a, b in zip(one, two, strict=True)] == [(i, i) for i in range(4)]


def test_a_loop_broken_off_begins_anew(loader_class, num_workers):
    loader = loader_class(Numbers(20), batch_size=2, num_workers=num_workers)
    for stop in [1, 3]:
        for position, batch in enumerate(loader, 1):
            assert batch.tolist() == [2 * position - 2, 2 * position - 1]
            if position == stop:
                break
    assert numbers(loader) == list(range(20))


def test_many_loops_broken_off_at_once(loader_class, num_workers):
    loader = loader_class(Numbers(20), num_workers=num_workers)
    assert [next(iter(loader)).tolist() for _ in range(5)] == [[0]] * 5


def test_an_exhausted_iterator_stays_exhausted(loader_class, num_workers):
    iterator = iter(loader_class(Numbers(2), num_workers=num_workers))
    list(iterator)
    for _ in range(3):
        with pytest.raises(StopIteration):
            next(iterator)


def test_an_iterator_cannot_be_pickled(loader_class, num_workers):
    iterator = iter(loader_class(Numbers(2), num_workers=num_workers))
    with pytest.raises(NotImplementedError):
        pickle.dumps(iterator)


def test_an_iterator_is_of_the_class_that_torch_names(loader_class, num_workers):
    """Frameworks look for it."""
    iterator = iter(loader_class(Numbers(2), num_workers=num_workers))
    assert isinstance(iterator, data.dataloader._BaseDataLoaderIter)


def test_the_iterator_frees_its_dataset(loader_class, num_workers):
    dataset = Numbers(4)
    loader = loader_class(dataset, num_workers=num_workers)
    iterator = iter(loader)
    next(iterator)
    reference = weakref.ref(dataset)
    del iterator, loader, dataset
    gc.collect()
    assert reference() is None


def test_an_iterator_outlives_its_loader(loader_class, num_workers):
    iterator = iter(loader_class(Numbers(4), num_workers=num_workers))
    gc.collect()
    assert numbers(iterator) == [0, 1, 2, 3]


def test_a_loader_as_the_dataset_of_another(loader_class):
    """A stream that reads a loader of its own inline."""

    class Nested(data.IterableDataset):
        def __iter__(self):
            return iter(data.DataLoader(Numbers(4), batch_size=None))

    assert values(loader_class(Nested(), batch_size=2, num_workers=1)) == [[0, 1], [2, 3]]


def test_a_loader_within_a_worker(loader_class):
    class Nested(Numbers):
        def __init__(self, kind):
            super().__init__(2)
            self.kind = kind

        def __getitem__(self, index):
            return sum(numbers(self.kind(Numbers(index + 3))))

    assert values(loader_class(Nested(loader_class), batch_size=2, num_workers=1)) == [[3, 6]]


def test_a_stream_over_a_loader_of_this_process(loader_class):
    class Over(data.IterableDataset):
        def __init__(self, loader):
            self.loader = loader

        def __iter__(self):
            for batch in self.loader:
                yield from batch.tolist()

    inner = loader_class(Numbers(5), batch_size=2, num_workers=1)
    assert values(loader_class(Over(inner), batch_size=3)) == [[0, 1, 2], [3, 4]]


def test_a_loader_read_in_a_thread(loader_class, num_workers):
    found = []
    thread = threading.Thread(
        target=lambda: found.extend(numbers(loader_class(Numbers(6), batch_size=2, num_workers=num_workers)))
    )
    thread.start()
    thread.join(60)
    assert found == list(range(6))


def test_an_iterator_read_by_several_threads_one_after_the_other(loader_class, num_workers):
    iterator = iter(loader_class(Numbers(6), num_workers=num_workers))
    found = []
    for _ in range(6):
        thread = threading.Thread(target=lambda: found.append(int(next(iterator))))
        thread.start()
        thread.join(60)
    assert found == list(range(6))


COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda loader: pickle.loads(pickle.dumps(loader)),
}


@pytest.mark.parametrize("how", COPIES)
def test_a_copy_of_a_loader_that_has_not_begun(loader_class, num_workers, how):
    loader = loader_class(Scaled(6), batch_size=2, drop_last=True, num_workers=num_workers, collate_fn=identity)
    twin = COPIES[how](loader)
    assert type(twin) is loader_class
    assert (twin.batch_size, twin.drop_last, twin.num_workers) == (2, True, num_workers)
    assert list(twin) == list(loader) == [[0, 1], [2, 3], [4, 5]]
    with pytest.raises(ValueError, match="batch_size"):
        twin.batch_size = 3


@pytest.mark.parametrize("how", COPIES)
def test_a_copy_of_a_loader_that_has_been_read(loader_class, num_workers, how):
    loader = loader_class(Numbers(4), batch_size=2, num_workers=num_workers)
    list(loader)
    assert values(COPIES[how](loader)) == [[0, 1], [2, 3]]


def test_a_deep_copy_has_a_dataset_of_its_own(loader_class):
    loader = loader_class(Scaled(3), batch_size=3)
    twin = copy.deepcopy(loader)
    loader.dataset.factor = 10
    assert values(twin) == [[0, 1, 2]]


def test_a_pickled_loader_has_a_generator_of_its_own(loader_class):
    loader = loader_class(Numbers(9), batch_size=9, shuffle=True, generator=torch.Generator().manual_seed(2))
    twin = pickle.loads(pickle.dumps(loader))
    assert values(twin) == values(loader)


@pytest.mark.parametrize(
    "dataset", [Numbers(3), pytest.param(Split(3), marks=pytest.mark.exhaustive)], ids=["map", "stream"]
)
def test_the_profiler_shows_the_loader(loader_class, num_workers, dataset):
    loader = loader_class(dataset, num_workers=num_workers)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        list(loader)
    spans = [event.name for event in profile.events() if event.name.startswith("enumerate(DataLoader)#")]
    assert len(spans) == 4  # three batches and the end
    assert all(span.endswith(".__next__") for span in spans)


def test_the_loader_can_be_used_with_zip_enumerate_and_map(loader_class, num_workers):
    loader = loader_class(Numbers(3), num_workers=num_workers)
    assert [(i, int(batch)) for i, batch in enumerate(loader)] == [(0, 0), (1, 1), (2, 2)]
    assert list(map(int, loader)) == [0, 1, 2]
    (first, *rest) = loader
    assert (int(first), len(rest)) == (0, 2)


def test_a_loader_is_no_iterator(loader_class):
    with pytest.raises(TypeError):
        next(loader_class(Numbers(2)))


def test_a_loader_that_has_never_been_read_leaves_nothing(loader_class):
    loader_class(Numbers(4), num_workers=2, persistent_workers=True)
    iter(loader_class(Numbers(4), num_workers=2))


def test_workers_of_an_iterator_can_be_looked_at(loader_class):
    iterator = iter(loader_class(Numbers(6), num_workers=2, persistent_workers=True))
    workers = list(iterator._workers)
    assert [worker.is_alive() for worker in workers] == [True, True]
    assert [worker.exitcode for worker in workers] == [None, None]
    assert len({worker.pid for worker in workers} - {os.getpid()}) == 2
    assert [worker.ident for worker in workers] == [worker.pid for worker in workers]
    assert all(isinstance(worker.name, str) for worker in workers)
    sentinels = [worker.sentinel for worker in workers]
    assert not multiprocessing.connection.wait(sentinels, timeout=0)
    iterator._shutdown_workers()
    assert set(multiprocessing.connection.wait(sentinels, timeout=30)) <= set(sentinels)
    for worker in workers:
        worker.join(30)
    assert [(worker.is_alive(), worker.exitcode) for worker in workers] == [(False, 0), (False, 0)]
    for worker in workers:
        worker.terminate()  # which changes nothing any more


def test_workers_are_gone_when_the_iterator_is(loader_class):
    iterator = iter(loader_class(Numbers(60), num_workers=2))
    workers = list(iterator._workers)
    next(iterator)
    del iterator
    for worker in workers:
        worker.join(30)
    assert not any(worker.is_alive() for worker in workers)
