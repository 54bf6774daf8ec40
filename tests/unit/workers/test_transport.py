"""A result's way from a worker to the consumer, and its slot's way back."""

from __future__ import annotations

import contextlib
import gc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker.memory import Slots
from stoker.workers import SlotTransport, transport
from stoker.workers.transport import Writer


@pytest.fixture
def way():
    carried = SlotTransport(Slots.create())
    yield carried
    carried.close()


def handed_out(carried, slot, packed):
    data, lease = carried.open(slot, packed)
    lease.slot = slot
    return data


def written(carried, slot, batches, shared=True):
    writer = Writer(carried.slots, shared=shared)
    writer.begin(slot)
    packed = []
    for batch in batches:
        packed.append(writer.write(batch))
        writer.keep(packed[-1])
    return packed


@pytest.mark.parametrize("shared", [True, False])
def test_what_a_writer_keeps_is_opened_as_it_was_written(way, shared):
    batches = [{"x": np.arange(k + 1), "name": f"batch {k}"} for k in range(5)]
    packed = written(way, 3, batches, shared)
    way.lend(3, 5)
    for batch, one in zip(batches, packed, strict=True):
        found = handed_out(way, 3, one)
        assert found["x"].tolist() == batch["x"].tolist()
        assert found["name"] == batch["name"]


def test_what_a_writer_does_not_keep_is_written_over(way):
    writer = Writer(way.slots, shared=True)
    writer.begin(0)
    torn, whole = writer.write(np.zeros(8)), writer.write(np.ones(8))
    assert torn.offset == whole.offset
    writer.keep(whole)
    assert writer.write(np.zeros(8)).offset >= whole.end
    way.lend(0, 1)
    assert handed_out(way, 0, whole).tolist() == [1.0] * 8


def test_a_batch_that_was_opened_but_not_handed_out_can_be_opened_again(way):
    """An interrupt in between loses nothing, and frees nothing."""
    (packed,) = written(way, 0, [np.arange(4)])
    way.lend(0, 1)
    way.open(0, packed)
    assert way.free() == []
    found = handed_out(way, 0, packed)
    assert found.tolist() == [0, 1, 2, 3]
    del found
    assert way.free() == [0]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4), st.integers(0, 15)), max_size=12), st.randoms())
def test_a_slot_is_free_once_each_of_its_batches_was_dropped_or_let_go_of(runs, random):
    """Against a naive model, which counts what is held of each slot."""
    held: list[tuple[int, np.ndarray]] = []
    in_use: dict[int, int] = {}
    with contextlib.closing(SlotTransport(Slots.create())) as carried:
        for slot, batches, dropped in runs:
            while slot in in_use:  # the engine waits for it, too
                freed, array = held.pop(random.randrange(len(held)))
                del array
                in_use[freed] -= 1
                expected = [freed] if not in_use[freed] else []
                assert carried.free() == expected
                if expected:
                    del in_use[freed]
            packed = written(carried, slot, [np.full(3, 10 * slot + k) for k in range(batches)])
            carried.lend(slot, batches)
            in_use[slot] = 0
            for k, one in enumerate(packed):
                if dropped >> k & 1:
                    carried.drop(slot)
                else:
                    held.append((slot, handed_out(carried, slot, one)))
                    in_use[slot] += 1
            if not in_use[slot]:
                del in_use[slot]
                assert carried.free() == [slot]
            assert all(array.tolist()[0] // 10 == owner for owner, array in held)
    assert all(array.tolist()[0] // 10 == owner for owner, array in held)  # also when all is closed


def test_how_many_slots_may_be_held_follows_from_the_largest(way, monkeypatch):
    monkeypatch.setattr(transport, "HELD_BYTES", 100 * 4096)
    written(way, 0, [np.zeros(4096, np.uint8)])
    way.arrived(0)
    assert way.held_allowed == 100
    written(way, 1, [np.zeros(25 * 4096, np.uint8)])
    way.arrived(1)
    assert way.held_allowed == 4
    written(way, 2, [np.zeros(1000 * 4096, np.uint8)])
    way.arrived(2)
    assert way.held_allowed == 2, "the one that is used, and the one that comes"
    way.arrived(0)
    assert way.held_allowed == 2


def test_few_mappings_left_are_few_slots_to_hold(way, monkeypatch):
    monkeypatch.setattr(transport, "mappings_left", lambda: 3)
    written(way, 4, [np.zeros(8)])
    way.arrived(4)
    assert way.held_allowed == 5 + 3


def test_closing_frees_all_but_what_is_held(way):
    first, second = written(way, 0, [np.arange(3), np.arange(5)])
    way.lend(0, 2)
    held = handed_out(way, 0, second)
    handed_out(way, 0, first)
    way.close()
    way.close()
    gc.collect()
    assert held.tolist() == [0, 1, 2, 3, 4]
    assert way.slots.fd == -1
