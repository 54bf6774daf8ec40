"""How long a loader says it is, and the warning if a stream has said something else."""

from __future__ import annotations

import warnings

import pytest

from tests.torch_front.datasets import Endless, Numbers, Recorded, Sized, Stream, numbers, values

torch = pytest.importorskip("torch", reason="torch is not installed")
data = torch.utils.data


@pytest.mark.parametrize(
    ("count", "batch_size", "drop_last", "length"),
    [
        (10, 1, False, 10),
        (10, 3, False, 4),
        (10, 3, True, 3),
        (10, 5, True, 2),
        (2, 3, False, 1),
        (2, 3, True, 0),
        (0, 3, False, 0),
        (10, None, False, 10),
    ],
)
def test_a_map_style_loader_has_as_many_batches_as_it_says(loader_class, count, batch_size, drop_last, length):
    loader = loader_class(Numbers(count), batch_size=batch_size, drop_last=drop_last)
    assert len(loader) == length
    assert len(list(loader)) == length


@pytest.mark.parametrize(
    ("batch_size", "drop_last", "length"), [(1, False, 10), (3, False, 4), (3, True, 3), (None, False, 10)]
)
def test_a_streams_length_is_made_of_what_it_claims(loader_class, batch_size, drop_last, length):
    loader = loader_class(Sized(10, claimed=10), batch_size=batch_size, drop_last=drop_last)
    assert len(loader) == length
    assert len(list(loader)) == length


def test_the_length_follows_the_sampler(loader_class):
    assert len(loader_class(Numbers(10), batch_size=2, sampler=[1, 2, 3])) == 2
    assert len(loader_class(Numbers(10), batch_size=None, sampler=[1, 2, 3])) == 3


def test_the_length_follows_the_batch_sampler(loader_class):
    assert len(loader_class(Numbers(10), batch_sampler=[[1, 2], [3], [4]])) == 3


def test_a_dataset_that_grows_makes_the_loader_longer(loader_class):
    dataset = Numbers(4)
    loader = loader_class(dataset, batch_size=2)
    dataset.count = 7
    assert len(loader) == 4
    assert values(loader) == [[0, 1], [2, 3], [4, 5], [6]]


def test_a_dataset_that_grows_makes_the_shuffled_loader_longer(loader_class):
    dataset = Numbers(4)
    loader = loader_class(dataset, batch_size=2, shuffle=True)
    assert sorted(numbers(loader)) == [0, 1, 2, 3]
    dataset.count = 6
    assert sorted(numbers(loader)) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("batch_size", [2, None])
def test_a_stream_without_length_has_none(loader_class, batch_size):
    with pytest.raises(TypeError):
        len(loader_class(Stream(), batch_size=batch_size))


@pytest.mark.parametrize(
    "arguments", [{"sampler": Endless(3)}, {"batch_sampler": Endless(3)}], ids=lambda a: next(iter(a))
)
def test_a_sampler_without_length_gives_none(loader_class, arguments):
    loader = loader_class(Numbers(), **arguments)
    with pytest.raises(TypeError):
        len(loader)


def test_an_iterator_is_as_long_as_its_loader(loader_class, num_workers):
    iterator = iter(loader_class(Numbers(10), batch_size=3, num_workers=num_workers))
    assert len(iterator) == 4
    next(iterator)
    assert len(iterator) == 4


def test_asking_for_the_length_starts_nothing(loader_class):
    sampler = Recorded(range(6))
    assert len(loader_class(Numbers(), batch_size=2, sampler=sampler, num_workers=2)) == 3
    assert sampler.log == []


def test_a_stream_longer_than_it_said_is_warned_of(loader_class):
    loader = loader_class(Sized(5, claimed=3))
    assert len(loader) == 3
    iterator = iter(loader)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert values([next(iterator) for _ in range(3)]) == [[0], [1], [2]]
    with pytest.warns(UserWarning, match=r"Length of IterableDataset .* reported to be 3.* but 4 samples"):
        next(iterator)
    with pytest.warns(UserWarning, match=r"but 5 samples"):
        next(iterator)
    with pytest.raises(StopIteration):
        next(iterator)


def test_a_stream_repeated_by_each_worker_is_warned_of(loader_class):
    loader = loader_class(Sized(2, claimed=2), num_workers=2)
    assert len(loader) == 2
    with pytest.warns(UserWarning, match="multiprocessing data-loading") as warned:
        assert values(loader) == [[0], [0], [1], [1]]
    assert len(warned) == 2


def test_a_stream_whose_length_nobody_asked_for_is_not_warned_of(loader_class, num_workers):
    assert len(list(loader_class(Sized(5, claimed=3), num_workers=num_workers))) == 5 * max(num_workers, 1)


def test_a_stream_shorter_than_it_said_is_not_warned_of(loader_class):
    loader = loader_class(Sized(5, claimed=10))
    assert len(loader) == 10
    assert len(list(loader)) == 5


def test_batches_are_counted_against_the_claimed_samples(loader_class):
    """So that ten samples in five batches are no more than five claimed."""
    loader = loader_class(Sized(10, claimed=5), batch_size=2)
    assert len(loader) == 3
    assert len(list(loader)) == 5


def test_a_length_asked_for_after_the_start_counts_from_the_next_epoch(loader_class):
    loader = loader_class(Sized(3, claimed=2))
    iterator = iter(loader)
    assert len(loader) == 2
    assert len(list(iterator)) == 3
    with pytest.warns(UserWarning, match="reported to be 2"):
        list(loader)


def test_a_lying_stream_is_warned_of_with_persistent_workers_in_each_epoch(loader_class):
    loader = loader_class(Sized(3, claimed=2), num_workers=1, persistent_workers=True)
    assert len(loader) == 2
    for _ in range(2):
        with pytest.warns(UserWarning, match="but 3 samples"):
            assert len(list(loader)) == 3
