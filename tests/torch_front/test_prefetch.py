"""How far ahead the sampler is read, batches out of order, and a worker that hangs."""

from __future__ import annotations

import os
import re
import time
from collections import Counter

import pytest

from tests.torch_front.datasets import Gated, Numbers, Recorded, Uneven, numbers, values

torch = pytest.importorskip("torch", reason="torch is not installed")


class GatedStream(torch.utils.data.IterableDataset):
    """Eight samples of each worker; worker 1 waits for a gate first."""

    def __init__(self, path):
        self.path = path

    def __iter__(self):
        worker = torch.utils.data.get_worker_info().id
        if worker == 1:
            os.close(os.open(self.path, os.O_RDONLY))
        yield from range(100 * worker, 100 * worker + 8)


data = torch.utils.data

COUNT = 40


def test_inline_the_sampler_is_read_batch_by_batch(loader_class):
    sampler = Recorded(range(COUNT))
    iterator = iter(loader_class(Numbers(COUNT), batch_size=3, sampler=sampler))
    assert sampler.log == []
    for batch in range(1, 4):
        next(iterator)
        assert sampler.given == 3 * batch


@pytest.mark.parametrize("taken", [0, 1, 5])
@pytest.mark.parametrize("prefetch", [1, 2, 4])
@pytest.mark.parametrize("workers", [1, 2])
def test_the_sampler_is_read_no_further_ahead_than_prefetch_allows(loader_class, workers, prefetch, taken):
    sampler = Recorded(range(COUNT))
    loader = loader_class(Numbers(COUNT), batch_size=2, sampler=sampler, num_workers=workers, prefetch_factor=prefetch)
    iterator = iter(loader)
    for _ in range(taken):
        next(iterator)
    assert 2 * taken <= sampler.given <= 2 * (workers * prefetch + taken)


def test_a_batch_sampler_is_read_no_further_ahead_than_prefetch_allows(loader_class):
    sampler = Recorded([[index] for index in range(COUNT)])
    iterator = iter(loader_class(Numbers(COUNT), batch_sampler=sampler, num_workers=2, prefetch_factor=2))
    assert sampler.given <= 4
    next(iterator)
    assert sampler.given <= 5


def test_samplers_without_batches_are_read_no_further_ahead_than_prefetch_allows(loader_class):
    sampler = Recorded(range(COUNT))
    iterator = iter(loader_class(Numbers(COUNT), batch_size=None, sampler=sampler, num_workers=2, prefetch_factor=3))
    assert sampler.given <= 6
    next(iterator)
    assert sampler.given <= 7


def test_persistent_workers_read_no_further_ahead_in_later_epochs(loader_class):
    sampler = Recorded(range(COUNT))
    loader = loader_class(Numbers(COUNT), sampler=sampler, num_workers=2, prefetch_factor=2, persistent_workers=True)
    list(loader)
    sampler.log.clear()
    iterator = iter(loader)
    assert sampler.given <= 4
    next(iterator)
    assert sampler.given <= 5


@pytest.mark.parametrize("persistent", [False, True], ids=["fresh", "persistent"])
def test_the_sampler_is_not_iterated_for_an_epoch_that_nobody_began(loader_class, persistent):
    sampler = Recorded(range(6))
    loader = loader_class(Numbers(6), sampler=sampler, num_workers=2, persistent_workers=persistent)
    assert numbers(loader) == list(range(6))
    ended = len(sampler.log) - sampler.log.index("end") - 1
    assert ended == 0
    starts = sampler.log.count("start")
    assert numbers(loader) == list(range(6))
    assert sampler.log.count("end") == 2
    assert sampler.log[-1] == "end"
    assert sampler.log.count("start") <= 2 * starts


def test_the_sampler_is_not_read_again_after_its_end(loader_class, num_workers):
    class Once:
        """An iterator that must not be asked after it has ended."""

        left = 4

        def __iter__(self):
            return self

        def __next__(self):
            if self.left == 0:
                raise StopIteration
            self.left -= 1
            return self.left

    iterator = iter(loader_class(Numbers(), sampler=Once(), batch_size=1, num_workers=num_workers))
    assert numbers(iterator) == [3, 2, 1, 0]
    with pytest.raises(StopIteration):
        next(iterator)


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("prefetch", [1, 5])
def test_any_prefetch_gives_the_same_batches(loader_class, workers, prefetch):
    loader = loader_class(Numbers(11), batch_size=2, num_workers=workers, prefetch_factor=prefetch)
    assert numbers(loader) == list(range(11))


def test_prefetch_set_later_counts_from_the_next_epoch(loader_class):
    sampler = Recorded(range(COUNT))
    loader = loader_class(Numbers(COUNT), sampler=sampler, num_workers=1, prefetch_factor=8)
    loader.prefetch_factor = 1
    iterator = iter(loader)
    assert sampler.given <= 1
    next(iterator)
    assert sampler.given <= 2


def test_in_order_a_slow_batch_holds_up_the_others(loader_class, gate):
    dataset = Gated(gate.path, at=0, count=6)
    iterator = iter(loader_class(dataset, batch_size=None, num_workers=2))
    gate.open_when_waited_for()
    assert list(iterator) == [0, 1, 2, 3, 4, 5]


def test_out_of_order_a_slow_batch_lets_others_pass(loader_class, gate):
    dataset = Gated(gate.path, at=0, count=6)
    iterator = iter(loader_class(dataset, batch_size=None, num_workers=2, in_order=False))
    before = [next(iterator) for _ in range(4)]
    assert 0 not in before
    gate.open_when_waited_for()
    assert Counter(before + list(iterator)) == Counter(range(6))


@pytest.mark.parametrize("slow", [0, 1])
def test_out_of_order_what_waits_behind_a_slow_batch_stays_with_its_worker(loader_class, gate, slow):
    dataset = Gated(gate.path, at=slow, count=10)
    iterator = iter(loader_class(dataset, batch_size=None, num_workers=2, prefetch_factor=2, in_order=False))
    before = [next(iterator) for _ in range(8)]
    assert before == [number for number in range(10) if number not in (slow, slow + 2)]
    gate.open_when_waited_for()
    assert list(iterator) == [slow, slow + 2]


@pytest.mark.parametrize("persistent", [False, True], ids=["fresh", "persistent"])
def test_out_of_order_nothing_is_lost_or_repeated(loader_class, persistent):
    loader = loader_class(
        Numbers(30), batch_size=2, num_workers=2, in_order=False, persistent_workers=persistent, shuffle=True
    )
    for _ in range(2):
        assert Counter(numbers(loader)) == Counter(range(30))


def test_out_of_order_streams_lose_and_repeat_nothing(loader_class):
    loader = loader_class(Uneven(5, 0, 8), batch_size=None, num_workers=3, in_order=False)
    found = list(loader)
    assert Counter(found) == Counter([*range(5), *range(200, 208)])
    assert [number for number in found if number < 100] == list(range(5))
    assert [number for number in found if number >= 200] == list(range(200, 208))


def test_out_of_order_a_slow_stream_does_not_hold_up_the_others(loader_class, gate):
    iterator = iter(loader_class(GatedStream(gate.path), batch_size=None, num_workers=2, in_order=False))
    assert [next(iterator) for _ in range(8)] == list(range(8))
    gate.open_when_waited_for()
    assert list(iterator) == list(range(100, 108))


def test_out_of_order_inline_is_in_order(loader_class):
    assert values(loader_class(Numbers(4), batch_size=2, in_order=False)) == [[0, 1], [2, 3]]


@pytest.fixture
def seconds(loader_class):
    """After which it times out. Torch's loader counts how long its worker takes to start."""
    return 0.3 if loader_class.__module__.startswith("stoker") else 5.0


def test_a_hanging_worker_raises_after_the_timeout(loader_class, seconds, gate):
    iterator = iter(loader_class(Gated(gate.path, at=2), batch_size=None, num_workers=1, timeout=seconds))
    assert [next(iterator), next(iterator)] == [0, 1]
    with pytest.raises(RuntimeError, match=re.escape(f"timed out after {seconds} seconds")):
        next(iterator)
    gate.open()


def test_a_hanging_stream_raises_after_the_timeout(loader_class, seconds, gate):
    class Hanging(data.IterableDataset):
        def __iter__(self):
            yield 0
            Gated(gate.path)[0]
            yield 1

    iterator = iter(loader_class(Hanging(), batch_size=None, num_workers=1, timeout=seconds))
    assert next(iterator) == 0
    with pytest.raises(RuntimeError, match="timed out"):
        next(iterator)
    gate.open()


def test_a_hanging_collate_fn_raises_after_the_timeout(loader_class, gate):
    path = gate.path
    loader = loader_class(
        Numbers(2), collate_fn=lambda batch: Gated(path)[0], num_workers=1, timeout=0.3, prefetch_factor=1
    )
    iterator = iter(loader)
    with pytest.raises(RuntimeError, match="timed out"):
        next(iterator)
    gate.open()


def test_a_timeout_that_is_not_reached_changes_nothing(loader_class):
    assert numbers(loader_class(Numbers(6), batch_size=2, num_workers=2, timeout=60)) == list(range(6))


def test_the_timeout_is_for_one_batch_not_for_the_epoch(loader_class):
    class Slow(Numbers):
        def __getitem__(self, index):
            time.sleep(0.05)
            return index

    assert list(loader_class(Slow(10), batch_size=None, num_workers=1, timeout=0.4)) == list(range(10))


class Written(torch.utils.data.Dataset):
    """Writes down each sample that it makes."""

    def __init__(self, path):
        self.path = str(path)

    def __len__(self):
        return 100

    def __getitem__(self, index):
        time.sleep(0.01)
        with open(self.path, "a") as file:
            file.write("x")
        return index


def test_as_many_batches_are_made_ahead_as_prefetch_factor_says(loader_class, tmp_path):
    dataset = Written(tmp_path / "made")
    iterator = iter(loader_class(dataset, batch_size=1, num_workers=2, prefetch_factor=5))
    next(iterator)
    deadline = time.monotonic() + 20.0
    while os.path.getsize(dataset.path) < 2 * 5:
        assert time.monotonic() < deadline
        time.sleep(0.01)  # a file has no event to wait for
