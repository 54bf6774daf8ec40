"""Iterable datasets: a copy in each worker, batches from the workers in turn, workers that end before others."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.torch_front.datasets import Numbers, Sized, Split, Stream, Uneven, identity, values
from tests.torch_front.sameness import assert_same

torch = pytest.importorskip("torch", reason="torch is not installed")
data = torch.utils.data


class Counting(data.IterableDataset):
    """Counts how often it has been iterated, and can be changed from outside."""

    epoch = 0

    def __init__(self):
        self.started = 0

    def __iter__(self):
        self.started += 1
        yield self.started
        yield self.epoch


class Itself(data.IterableDataset):
    """Is its own iterator, so that it has but one epoch."""

    position = 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.position == 3:
            raise StopIteration
        self.position += 1
        return self.position


class Endless(data.IterableDataset):
    def __iter__(self):
        return itertools.count()


class Taken(data.IterableDataset):
    """Knows how many samples have been taken from it."""

    def __init__(self):
        self.taken = 0

    def __iter__(self):
        for number in range(20):
            self.taken += 1
            yield number


@pytest.mark.parametrize(
    ("batch_size", "drop_last", "batches"),
    [
        (3, False, [[0, 1, 2], [3, 4, 5], [6]]),
        (3, True, [[0, 1, 2], [3, 4, 5]]),
        (7, True, [[0, 1, 2, 3, 4, 5, 6]]),
        (8, False, [[0, 1, 2, 3, 4, 5, 6]]),
        (8, True, []),
    ],
)
def test_batches_in_order(loader_class, batch_size, drop_last, batches):
    assert values(loader_class(Stream(7), batch_size=batch_size, drop_last=drop_last)) == batches


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_each_worker_gives_the_whole_stream(loader_class, workers):
    loader = loader_class(Stream(5), batch_size=2, num_workers=workers)
    assert values(loader) == [[0, 1]] * workers + [[2, 3]] * workers + [[4]] * workers


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_workers_split_the_stream(loader_class, workers):
    loader = loader_class(Split(9), batch_size=None, num_workers=workers)
    assert list(loader) == list(range(9))


def test_without_batches_samples_come_in_turn(loader_class):
    assert_same(list(loader_class(Stream(3), batch_size=None, num_workers=2)), [0, 0, 1, 1, 2, 2])


def test_without_batches_arrays_become_tensors(loader_class, num_workers):
    class Arrays(data.IterableDataset):
        def __iter__(self):
            yield np.arange(3)

    expected = [torch.arange(3)] * max(1, num_workers)
    assert_same(list(loader_class(Arrays(), batch_size=None, num_workers=num_workers)), expected)


def test_without_batches_collate_fn_gets_a_sample(loader_class, num_workers):
    loader = loader_class(Split(3), batch_size=None, collate_fn=str, num_workers=num_workers)
    assert list(loader) == ["0", "1", "2"]


def test_drop_last_is_for_each_worker(loader_class):
    loader = loader_class(Uneven(5, 3, 4), batch_size=2, drop_last=True, num_workers=3)
    assert values(loader) == [[0, 1], [100, 101], [200, 201], [2, 3], [202, 203]]


@pytest.mark.parametrize("prefetch", [1, 2, 3])
@pytest.mark.parametrize(
    ("counts", "order"),
    [
        ((1, 4), [0, 100, 101, 102, 103]),
        ((4, 1), [0, 100, 1, 2, 3]),
        ((0, 3), [100, 101, 102]),
        ((3, 0), [0, 1, 2]),
        ((0, 0), []),
        ((1, 3, 2), [0, 100, 200, 101, 201, 102]),
        ((0, 1, 3), [100, 200, 201, 202]),
        ((2, 0, 5), [0, 200, 1, 201, 202, 203, 204]),
    ],
)
def test_workers_that_have_ended_are_left_out(loader_class, counts, order, prefetch):
    loader = loader_class(Uneven(*counts), batch_size=None, num_workers=len(counts), prefetch_factor=prefetch)
    assert list(loader) == order


@pytest.mark.parametrize("counts", [(1, 20), (20, 1), (3, 9, 5), (0, 0, 7)])
def test_the_order_after_workers_have_ended_is_that_of_torch(loader_class, counts):
    def run(kind):
        return values(kind(Uneven(*counts), batch_size=2, num_workers=len(counts)))

    assert run(loader_class) == run(data.DataLoader)


def test_the_last_batch_of_each_worker_may_be_short(loader_class):
    loader = loader_class(Uneven(3, 2), batch_size=2, num_workers=2)
    assert values(loader) == [[0, 1], [100, 101], [2]]


def test_an_empty_stream_gives_no_batch(loader_class, num_workers):
    assert list(loader_class(Stream(0), batch_size=2, num_workers=num_workers)) == []


def test_inline_the_dataset_itself_is_iterated(loader_class):
    dataset = Counting()
    loader = loader_class(dataset, batch_size=None)
    assert list(loader) == [1, 0]
    assert list(loader) == [2, 0]
    assert dataset.started == 2


def test_workers_iterate_copies(loader_class):
    dataset = Counting()
    loader = loader_class(dataset, batch_size=None, num_workers=2)
    assert [list(loader), list(loader)] == [[1, 1, 0, 0]] * 2
    assert dataset.started == 0


def test_persistent_workers_keep_their_copies(loader_class):
    dataset = Counting()
    loader = loader_class(dataset, batch_size=None, num_workers=2, persistent_workers=True)
    assert list(loader) == [1, 1, 0, 0]
    dataset.epoch = 5
    assert list(loader) == [2, 2, 0, 0]


def test_a_change_of_the_dataset_arrives_with_the_next_epoch(loader_class, num_workers):
    dataset = Counting()
    loader = loader_class(dataset, batch_size=None, num_workers=num_workers)
    list(loader)
    dataset.epoch = 5
    assert list(loader)[-1] == 5


def test_inline_no_more_samples_are_taken_than_needed(loader_class):
    dataset = Taken()
    iterator = iter(loader_class(dataset, batch_size=3))
    assert dataset.taken == 0
    next(iterator)
    assert dataset.taken == 3
    next(iterator)
    assert dataset.taken == 6


def test_a_dataset_that_is_its_own_iterator(loader_class):
    loader = loader_class(Itself(), batch_size=None)
    assert [list(loader), list(loader)] == [[1, 2, 3], []]
    loader = loader_class(Itself(), batch_size=None, num_workers=2)
    assert [list(loader), list(loader)] == [[1, 1, 2, 2, 3, 3]] * 2


def test_an_endless_stream(loader_class, num_workers):
    iterator = iter(loader_class(Endless(), batch_size=2, num_workers=num_workers))
    batches = values(itertools.islice(iterator, 4))
    assert batches == ([[0, 1], [0, 1], [2, 3], [2, 3]] if num_workers else [[0, 1], [2, 3], [4, 5], [6, 7]])


def test_a_generator_function_may_yield_anything(loader_class, num_workers):
    class Mixed(data.IterableDataset):
        def __iter__(self):
            yield "text"
            yield None
            yield {"a": 1}

    loader = loader_class(Mixed(), batch_size=None, num_workers=num_workers)
    expected = [sample for sample in ["text", None, {"a": 1}] for _ in range(max(1, num_workers))]
    assert_same(list(loader), expected)


def test_a_chain_of_streams(loader_class):
    dataset = data.ChainDataset([Stream(2), Stream(3)])
    assert values(loader_class(dataset, batch_size=2)) == [[0, 1], [0, 1], [2]]


def test_the_sum_of_streams_is_a_chain(loader_class):
    assert list(loader_class(Stream(2) + Stream(1), batch_size=None)) == [0, 1, 0]


def test_a_class_with_both_ways_is_taken_for_a_stream(loader_class):
    class Both(Sized):
        def __getitem__(self, index):
            raise AssertionError("asked for an index")

    assert values(loader_class(Both(3, claimed=3), batch_size=2)) == [[0, 1], [2]]


def test_an_iterable_that_is_no_iterabledataset_is_asked_for_indices(loader_class):
    class Both(Numbers):
        def __iter__(self):
            raise AssertionError("iterated")

    assert values(loader_class(Both(3), batch_size=2)) == [[0, 1], [2]]


def test_custom_collation_of_a_stream(loader_class, num_workers):
    loader = loader_class(Split(5), batch_size=2, collate_fn=identity, num_workers=num_workers)
    assert list(loader) == ([[0, 2], [1, 3], [4]] if num_workers else [[0, 1], [2, 3], [4]])


def test_a_stream_that_ended_stays_ended(loader_class, num_workers):
    iterator = iter(loader_class(Split(2), batch_size=None, num_workers=num_workers))
    assert list(iterator) == [0, 1]
    assert list(iterator) == []
    with pytest.raises(StopIteration):
        next(iterator)


def test_persistent_workers_serve_uneven_streams_in_each_epoch(loader_class):
    loader = loader_class(Uneven(1, 3), batch_size=None, num_workers=2, persistent_workers=True)
    assert [list(loader) for _ in range(3)] == [[0, 100, 101, 102]] * 3


def test_a_stream_read_by_several_loaders_at_once(loader_class):
    loader = loader_class(Stream(3), batch_size=None, num_workers=1)
    assert list(zip(loader, loader, strict=True)) == [(0, 0), (1, 1), (2, 2)]
