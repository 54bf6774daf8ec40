"""A job as bytes: what travels by value, what stays shared, and what cannot travel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stoker.errors import ShippingError
from stoker.plan import Plan
from stoker.sources import IndexedSource
from stoker.workers.packing import pack, unpack
from stoker.workers.worker import Job


class Held:
    """A dataset that holds anything."""

    def __init__(self, thing: Any) -> None:
        self.thing = thing

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> int:
        return index


def job_with(thing: Any) -> Job:
    dataset = Held(thing)
    return Job(IndexedSource.of(dataset), Plan(4, 2), None, skip_errors=False)


def nothing_shared(obj: Any) -> Any:
    return NotImplemented


def test_arrays_are_not_copied_into_the_pickle():
    array = np.arange(100_000)
    packed = pack(job_with(array), nothing_shared)
    assert len(packed.pickled) < 10_000
    assert np.shares_memory(np.frombuffer(packed.arrays[0], array.dtype), array)
    found = unpack(packed.pickled, packed.arrays).source.dataset
    assert np.array_equal(found.thing, array)


def test_a_packed_job_needs_no_segment_and_no_surroundings():
    """It can be sent as bytes to another machine."""
    packed = pack(job_with(np.arange(10)), nothing_shared)
    found = unpack(memoryview(bytes(packed.pickled)), [memoryview(bytes(array)) for array in packed.arrays])
    assert found.source.dataset.thing.tolist() == list(range(10))


def test_what_is_shared_is_the_senders_choice(tmp_path):
    """A mapped file travels by its name where workers see the same files, else with its contents."""
    np.save(tmp_path / "x.npy", np.arange(50_000))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")

    def by_name(obj: Any) -> Any:
        return (np.load, (str(tmp_path / "x.npy"), "r")) if type(obj) is np.memmap else NotImplemented

    alone, sharing = pack(job_with(mapped), nothing_shared), pack(job_with(mapped), by_name)
    assert sum(map(len, alone.arrays)) + len(alone.pickled) > mapped.nbytes
    assert sum(map(len, sharing.arrays)) + len(sharing.pickled) < 10_000
    for packed in (alone, sharing):
        found = unpack(packed.pickled, packed.arrays).source.dataset.thing
        assert np.array_equal(found, mapped)


def test_it_names_the_modules_that_are_worth_importing_early():
    packed = pack(job_with(np.arange(3)), nothing_shared)
    assert __name__ in packed.modules
    assert "stoker.workers.worker" in packed.modules


def test_what_cannot_travel_is_named_by_its_path(tmp_path):
    with open(tmp_path / "log", "w") as file, pytest.raises(ShippingError, match=r"Held\.thing\[1\]"):
        pack(job_with([1, file]), nothing_shared)
