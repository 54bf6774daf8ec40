"""Errors of users' code keep their type; those of workers say what happened there."""

from __future__ import annotations

import pytest

from tests.torch_front.datasets import Failing, FailingStream, Numbers, Recorded, Stream, identity, values

torch = pytest.importorskip("torch", reason="torch is not installed")
data = torch.utils.data


class Own(Exception):
    """An error of the user's own."""


class Several(Exception):
    """Cannot be made of a message alone."""

    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


class Odd(Exception):
    """Takes its message by name."""

    message = "odd"

    def __init__(self, message):
        super().__init__(message)


ERRORS = [
    ValueError("bad sample"),
    KeyError("bad sample"),
    IndexError("bad sample"),
    RuntimeError("bad sample"),
    AttributeError("bad sample"),
    TypeError("bad sample"),
    OSError("bad sample"),
    FileNotFoundError("bad sample"),
    NotImplementedError("bad sample"),
    AssertionError("bad sample"),
    ZeroDivisionError("bad sample"),
    Own("bad sample"),
    Odd("bad sample"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_of_the_dataset_keeps_its_type(loader_class, num_workers, error):
    iterator = iter(loader_class(Failing(error), num_workers=num_workers))
    assert values(next(iterator) for _ in range(3)) == [[0], [1], [2]]
    with pytest.raises(type(error), match="bad sample") as raised:
        next(iterator)
    assert type(raised.value) is type(error)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_of_a_worker_tells_of_its_worker_and_traceback(loader_class, error):
    with pytest.raises(type(error)) as raised:
        list(loader_class(Failing(error, at=3), num_workers=2))
    text = str(raised.value)
    assert f"Caught {type(error).__name__} in DataLoader worker process 1" in text
    assert "Traceback (most recent call last)" in text
    assert "datasets.py" in text
    assert "in __getitem__" in text
    assert "\n" in text  # a KeyError too, which otherwise shows its message on one line


def test_inline_the_very_error_is_raised(loader_class):
    error = ValueError("bad sample")
    with pytest.raises(ValueError, match=r"^bad sample$") as raised:
        list(loader_class(Failing(error)))
    assert raised.value is error


def test_an_error_that_cannot_be_made_again_becomes_a_runtime_error(loader_class):
    with pytest.raises(RuntimeError, match="Caught Several in DataLoader worker process 0") as raised:
        list(loader_class(Failing(Several("one", "two"), at=0), num_workers=1))
    assert "one and two" in str(raised.value)


@pytest.mark.parametrize("error", [ValueError("bad sample"), KeyError("bad sample"), Own("bad sample")], ids=repr)
@pytest.mark.parametrize("at", [-1, 0, 3])
def test_an_error_of_a_stream_keeps_its_type(loader_class, num_workers, error, at):
    loader = loader_class(FailingStream(error, at=at), num_workers=num_workers)
    with pytest.raises(type(error), match="bad sample") as raised:
        list(loader)
    assert type(raised.value) is type(error)
    assert num_workers == 0 or "in DataLoader worker process 0" in str(raised.value)


def failing_collation(batch):
    raise ValueError(f"cannot collate {len(batch)}")


def test_an_error_of_collate_fn_keeps_its_type(loader_class, num_workers):
    loader = loader_class(Numbers(4), batch_size=2, collate_fn=failing_collation, num_workers=num_workers)
    with pytest.raises(ValueError, match="cannot collate 2") as raised:
        list(loader)
    assert num_workers == 0 or "failing_collation" in str(raised.value)


def failing_start(worker):
    raise ValueError(f"cannot start {worker}")


def test_an_error_of_worker_init_fn_comes_with_the_first_batch(loader_class):
    iterator = iter(loader_class(Numbers(4), num_workers=2, worker_init_fn=failing_start))
    with pytest.raises(ValueError, match="cannot start 0") as raised:
        next(iterator)
    assert "Caught ValueError in DataLoader worker process 0" in str(raised.value)
    assert "failing_start" in str(raised.value)


def test_an_error_of_worker_init_fn_of_one_worker(loader_class):
    def fail(worker):
        if worker == 1:
            failing_start(worker)

    iterator = iter(loader_class(Numbers(4), num_workers=2, worker_init_fn=fail))
    assert next(iterator).tolist() == [0]
    with pytest.raises(ValueError, match="cannot start 1"):
        next(iterator)


class FailingSampler(Recorded):
    def __iter__(self):
        yield from super().__iter__()
        raise ValueError("bad sampler")


@pytest.mark.parametrize("count", [0, 1, 3])
def test_an_error_of_the_sampler_comes_up(loader_class, num_workers, count):
    loader = loader_class(Numbers(), sampler=FailingSampler(range(count)), num_workers=num_workers)
    with pytest.raises(ValueError, match=r"^bad sampler$"):
        list(loader)


def test_inline_batches_before_the_error_of_a_sampler_arrive(loader_class):
    iterator = iter(loader_class(Numbers(), sampler=FailingSampler(range(3))))
    assert values(next(iterator) for _ in range(3)) == [[0], [1], [2]]
    with pytest.raises(ValueError, match="bad sampler"):
        next(iterator)


def test_after_an_error_the_next_batches_arrive(loader_class, num_workers):
    iterator = iter(loader_class(Failing(ValueError("bad sample"), at=1, count=5), num_workers=num_workers))
    assert next(iterator).tolist() == [0]
    with pytest.raises(ValueError, match="bad sample"):
        next(iterator)
    assert values(iterator) == [[2], [3], [4]]


def test_after_an_error_in_a_batch_the_whole_batch_is_lost(loader_class, num_workers):
    loader = loader_class(Failing(ValueError("bad sample"), at=2, count=6), batch_size=2, num_workers=num_workers)
    iterator = iter(loader)
    assert next(iterator).tolist() == [0, 1]
    with pytest.raises(ValueError, match="bad sample"):
        next(iterator)
    assert values(iterator) == [[4, 5]]


def test_after_an_error_a_new_epoch_begins_anew(loader_class, num_workers):
    dataset = Failing(ValueError("bad sample"), at=1, count=3)
    loader = loader_class(dataset, num_workers=num_workers)
    with pytest.raises(ValueError, match="bad sample"):
        list(loader)
    dataset.at = None
    assert values(loader) == [[0], [1], [2]]


def test_after_an_error_persistent_workers_serve_the_next_epoch(loader_class):
    loader = loader_class(Failing(ValueError("bad sample"), at=1, count=3), num_workers=2, persistent_workers=True)
    for _ in range(2):
        iterator = iter(loader)
        assert next(iterator).tolist() == [0]
        with pytest.raises(ValueError, match="bad sample"):
            next(iterator)
        assert values(iterator) == [[2]]


def test_each_failing_batch_raises(loader_class, num_workers):
    class Refusing(Numbers):
        def __getitem__(self, index):
            raise ValueError(f"bad sample {index}")

    iterator = iter(loader_class(Refusing(3), num_workers=num_workers))
    for index in range(3):
        with pytest.raises(ValueError, match=f"bad sample {index}"):
            next(iterator)
    assert list(iterator) == []


def test_inline_stop_iteration_of_a_map_style_dataset_ends_the_epoch(loader_class):
    assert values(loader_class(Failing(StopIteration("bad sample"), at=2))) == [[0], [1]]


def test_stop_iteration_of_a_map_style_dataset_in_a_worker_ends_the_epoch(loader_class):
    """Torch raises it again where the loop takes it for the end."""
    assert values(loader_class(Failing(StopIteration("bad sample"), at=2), num_workers=2)) == [[0], [1]]


def test_stop_iteration_within_a_batch_of_a_map_style_dataset_loses_the_batch(loader_class, num_workers):
    loader = loader_class(Failing(StopIteration("bad sample"), at=3), batch_size=2, num_workers=num_workers)
    assert values(loader) == [[0, 1]]


def test_stop_iteration_of_a_generator_is_a_runtime_error(loader_class, num_workers):
    loader = loader_class(FailingStream(StopIteration("bad sample")), num_workers=num_workers)
    with pytest.raises(RuntimeError, match="generator raised StopIteration"):
        list(loader)


def test_stop_iteration_of_collate_fn_ends_a_stream(loader_class, num_workers):
    def stop(batch):
        raise StopIteration

    assert list(loader_class(Stream(5), collate_fn=stop, num_workers=num_workers)) == []


def test_an_index_out_of_range_is_an_index_error(loader_class, num_workers):
    with pytest.raises(IndexError):
        list(loader_class([1, 2], sampler=[0, 5], num_workers=num_workers))


def test_an_unknown_key_is_a_key_error(loader_class, num_workers):
    with pytest.raises(KeyError, match="nowhere"):
        list(loader_class({"a": 1}, sampler=["a", "nowhere"], num_workers=num_workers))


def test_a_dataset_without_getitem_is_not_implemented(loader_class, num_workers):
    class Empty(data.Dataset):
        def __len__(self):
            return 1

    with pytest.raises(NotImplementedError):
        list(loader_class(Empty(), num_workers=num_workers))


def test_a_stream_without_iter_is_not_implemented(loader_class, num_workers):
    class Empty(data.IterableDataset):
        pass

    with pytest.raises((NotImplementedError, TypeError)) as expected:
        list(data.DataLoader(Empty(), num_workers=num_workers))
    with pytest.raises(type(expected.value)):
        list(loader_class(Empty(), num_workers=num_workers))


def test_samples_that_cannot_be_collated_are_a_type_error(loader_class, num_workers):
    with pytest.raises(TypeError, match="NoneType"):
        list(loader_class([None, None], batch_size=2, num_workers=num_workers))


def test_samples_of_different_shapes_are_a_runtime_error(loader_class, num_workers):
    loader = loader_class([torch.zeros(2), torch.zeros(3)], batch_size=2, num_workers=num_workers)
    with pytest.raises(RuntimeError, match=r"equal size|stack"):
        list(loader)


def test_an_error_as_a_sample_is_just_a_sample(loader_class, num_workers):
    loader = loader_class([ValueError("x"), KeyError("y")], batch_size=2, collate_fn=identity, num_workers=num_workers)
    (batch,) = loader
    assert [type(sample) for sample in batch] == [ValueError, KeyError]


def test_an_error_in_the_loop_leaves_the_loader_usable(loader_class, num_workers):
    loader = loader_class(Numbers(4), num_workers=num_workers)

    def loop():
        for _ in loader:
            raise Own

    with pytest.raises(Own):
        loop()
    assert values(loader) == [[0], [1], [2], [3]]


class Stubborn:
    """Can be pickled, but the third cannot be opened again."""

    def __init__(self, number):
        self.number = number

    def __reduce__(self):
        return refuse_the_third, (self.number,)


def refuse_the_third(number):
    if number == 2:
        raise ValueError("not this one")
    return Stubborn(number)


class Objects(Numbers):
    def __getitem__(self, index):
        return Stubborn(index // 16)


def test_objects_that_cannot_be_opened_are_an_error_in_their_place(our_class):
    iterator = iter(our_class(Objects(80), batch_size=16, collate_fn=list, num_workers=1))
    assert [next(iterator)[0].number for _ in range(2)] == [0, 1]
    with pytest.raises(Exception, match="not this one"):
        next(iterator)
    assert [batch[0].number for batch in iterator] == [3, 4]
