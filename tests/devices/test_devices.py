"""Batches arrive on their device ahead of time, so many at most, and are whole: on fake, meta and CPU devices."""

from __future__ import annotations

import gc
import json
import time

import numpy as np
import pytest

from stoker import InFlight, Inline, Loader, Processes, Threads
from tests.datasets import Augmented, Failing, KilledOnce, Rows
from tests.devices.fake import FakeDevice
from tests.streams import assert_same, epochs

WORKERS = [Threads(2), Processes(2), Processes(2, start="fork")]
FIRSTS = list(range(0, 40, 5))


def make(device: FakeDevice, workers=2, dataset=None, **options) -> Loader:
    dataset = Rows(40) if dataset is None else dataset
    return Loader(dataset, 5, workers=workers, device=device, to_device=device.to_device, **options)


@pytest.mark.parametrize("workers", [Inline(), *WORKERS], ids=repr)
def test_the_lease_is_held_until_the_copy_has_finished(workers):
    """The copy reads the slot's memory late and bit by bit: if that were used again, it would be torn."""
    device = FakeDevice(seconds=0.01)
    with make(device, workers, prefetch=1) as loader, Loader(Rows(40), 5) as oracle:
        assert_same(epochs(loader, 2), epochs(oracle, 2))


def test_what_to_makes_is_held_until_the_copy_has_finished():
    device = FakeDevice(seconds=0.01)
    with make(device, to=lambda batch: batch + 0) as loader, Loader(Rows(40), 5) as oracle:
        assert_same(epochs(loader, 2), epochs(oracle, 2))


@pytest.mark.parametrize("most", [1, 2, 5])
def test_no_more_are_ahead_than_may_be(most):
    device = FakeDevice()
    with make(device, max_on_device=most) as loader:
        for _ in range(3):
            for _ in loader:
                device.handed_over += 1
                device.wait_for(device.handed_over + most)  # as many as may be are, or were, on their way
    assert device.most_ahead <= most + 1  # the one that is in the consumer's hands was not counted yet


def test_the_transfer_goes_on_while_the_consumer_is_at_its_step():
    """The step ends only when the next batch has been copied: that must happen without the consumer's asking."""
    device = FakeDevice(seconds=0.02)
    with make(device, max_on_device=1) as loader:
        for step, _ in enumerate(loader, 1):
            device.wait_for_end_of(min(step + 1, len(loader)))
        moving = loader.stats().moving
    assert moving >= 8 * 0.02


def test_it_is_a_thread_that_moves_and_the_consumer_itself_where_there_are_no_workers():
    device = FakeDevice()
    with make(device) as loader:
        list(loader)
    assert device.threads == {"stoker-conveyor"}
    device = FakeDevice()
    with make(device, Inline()) as loader:
        list(loader)
    assert device.threads == {"MainThread"}


@pytest.mark.parametrize("workers", WORKERS, ids=repr)
def test_what_was_moved_ahead_does_not_count_as_taken(workers):
    """Contract: exactly once. A state knows only what the consumer has got."""
    with Loader(Augmented(40), 5, shuffle=True) as oracle:
        wanted = [batch for epoch in epochs(oracle, 2) for batch in epoch]

    def to_device(batch):
        return {key: value.copy() for key, value in batch.items()}

    def moved(**options) -> Loader:
        return Loader(Augmented(40), 5, shuffle=True, workers=workers, to_device=to_device, max_on_device=3, **options)

    for step in (1, 4, 7, 8):
        with moved() as loader:
            iterator = iter(loader)
            got = [next(iterator) for _ in range(step)]
            state = json.loads(json.dumps(loader.state_dict()))
        with moved() as loader:
            loader.load_state_dict(state)
            while len(got) < len(wanted):
                got.extend(loader)
        assert_same(got, wanted)


@pytest.mark.parametrize("workers", WORKERS, ids=repr)
def test_breaking_off_and_jumping_with_batches_on_their_way(workers):
    device = FakeDevice(seconds=0.002)
    with make(device, workers, max_on_device=3) as loader:
        for epoch in range(3):
            for step, batch in enumerate(loader):
                assert int(batch[0, 0]) == FIRSTS[step]
                if step == 2 and epoch < 2:
                    break
        loader.set_epoch(7)
        assert [int(batch[0, 0]) for batch in loader] == FIRSTS
        assert loader.epoch == 8


@pytest.mark.parametrize("workers", WORKERS, ids=repr)
def test_errors_come_in_their_turn(workers):
    with make(FakeDevice(), workers, Failing(40)) as loader:
        iterator = iter(loader)
        assert [int(next(iterator)[0, 0]) for _ in range(2)] == [0, 5]
        with pytest.raises(ValueError, match="thirteen"):
            next(iterator)
        assert [int(batch[0, 0]) for batch in iterator] == FIRSTS[3:]


@pytest.mark.parametrize("workers", [Inline(), *WORKERS], ids=repr)
def test_an_error_of_to_device_comes_in_its_turn_and_the_rest_goes_on(workers):
    def to_device(batch):
        if batch[0, 0] == 10:
            raise OSError("the device fell off")
        return batch.copy()

    with Loader(Rows(40), 5, workers=workers, to_device=to_device) as loader:
        iterator = iter(loader)
        assert [int(next(iterator)[0, 0]) for _ in range(2)] == [0, 5]
        with pytest.raises(OSError, match="fell off"):
            next(iterator)
        assert [int(batch[0, 0]) for batch in iterator] == FIRSTS[3:]


def test_a_death_on_the_way_loses_nothing(tmp_path):
    with Loader(Augmented(100), 5, shuffle=True) as oracle:
        wanted = epochs(oracle, 2)
    dataset = KilledOnce(str(tmp_path / "killed"), 100)
    with Loader(dataset, 5, shuffle=True, workers=2, to_device=lambda batch: batch) as loader:
        assert_same(epochs(loader, 2), wanted)


@pytest.mark.parametrize("workers", WORKERS, ids=repr)
def test_a_forgotten_loader_ends_its_thread_too(workers):
    loader = make(FakeDevice(), workers)
    next(iter(loader))
    del loader
    gc.collect()  # that nothing is left is checked after every test


def test_closing_does_not_wait_for_a_batch_that_never_comes():
    class Endless(Rows):
        def __getitem__(self, index):
            time.sleep(60 if index >= 5 else 0)
            return super().__getitem__(index)

    began = time.monotonic()
    with make(FakeDevice(), dataset=Endless(40)) as loader:
        next(iter(loader))
    assert time.monotonic() - began < 20


def test_a_function_of_one_argument_needs_no_device():
    with Loader(Rows(8), 4, workers=2, to_device=lambda batch: batch.sum()) as loader:
        assert list(loader) == [4 * 6, 4 * 22]
    with Loader(Rows(8), 4, workers=2, device="there", to_device=lambda batch, device: (device, len(batch))) as loader:
        assert list(loader) == [("there", 4)] * 2
    with pytest.raises(TypeError, match="to_device"):
        Loader(Rows(8), to_device="cuda")
    with pytest.raises(ValueError, match="max_on_device"):
        Loader(Rows(8), max_on_device=0)


def test_in_flight_works_inline_too():
    def to_device(batch):
        moved = np.zeros_like(batch)
        return InFlight(moved, finish=lambda: np.copyto(moved, batch))

    with Loader(Rows(8), 4, to_device=to_device) as loader:
        assert [int(batch[0, 0]) for batch in loader] == [0, 4]


@pytest.mark.parametrize("workers", [Inline(), *WORKERS], ids=repr)
def test_torch_devices_that_are_here(workers):
    torch = pytest.importorskip("torch")
    with Loader(Rows(8), 4, workers=workers, to="torch", device="cpu") as loader:
        assert [batch[:, 0].tolist() for batch in loader] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    with Loader(Rows(8), 4, workers=workers, to="torch", device=torch.device("meta")) as loader:
        batches = list(loader)
    assert [(batch.device.type, tuple(batch.shape)) for batch in batches] == [("meta", (4, 4))] * 2
