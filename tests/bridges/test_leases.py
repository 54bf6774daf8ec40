"""A framework's tensor keeps its batch's memory for as long as it reads it, and no longer: with workers that go on."""

from __future__ import annotations

import re

import numpy as np
import pytest

from stoker import Loader, Processes
from stoker.bridges import bridge

EPOCHS = 2
BATCH_BYTES = 4 * 4096 * 4


class Noise:
    """Sample i is 16 KB that depend on i alone: a memory that is used again never has the same bytes."""

    def __init__(self, dtype: str = "float32") -> None:
        self.dtype = dtype

    def __len__(self):
        return 120

    def __getitem__(self, index):
        return np.random.default_rng(index).integers(0, 1 << 20, 4096).astype(self.dtype)


class Pairs(Noise):
    """A few bytes and, beside them, the noise."""

    def __getitem__(self, index):
        return np.full(3, index, np.uint8), super().__getitem__(index)


def slots() -> list[range]:
    """The addresses at which this process has slots mapped; smaller mappings are of other things."""
    with open("/proc/self/maps") as maps:
        found = [re.match(r"(\w+)-(\w+) .*memfd:stoker", line) for line in maps]
    mapped = [range(int(match[1], 16), int(match[2], 16)) for match in found if match]
    return [addresses for addresses in mapped if len(addresses) >= BATCH_BYTES]


def test_a_tensor_lies_in_the_slot_that_the_worker_wrote(sharing_framework):
    with Loader(Noise(), 4, workers=2, to=sharing_framework.name) as loader:
        for batch in loader:
            address = sharing_framework.address(batch)
            assert address % 64 == 0
            assert any(address in slot for slot in slots())


def test_each_leaf_of_a_batch_lies_there(sharing_framework):
    with Loader(Pairs(), 4, workers=2, to=sharing_framework.name) as loader:
        for batch in loader:
            first, second = (sharing_framework.address(leaf) for leaf in batch)
            assert any(first in slot and second in slot for slot in slots())


def test_tensors_that_are_all_held_never_change(framework):
    with Loader(Noise(), 4, shuffle=True, workers=2, to=framework.name) as loader:
        held = [(batch, framework.values(batch)) for _ in range(EPOCHS) for batch in loader]
        assert len(held) == 30 * EPOCHS
        for batch, values in held:
            np.testing.assert_array_equal(framework.values(batch), values)
    for batch, values in held:
        np.testing.assert_array_equal(framework.values(batch), values, "changed after close")


@pytest.mark.parametrize("dtype", ["float32", "int64"])  # JAX shares the one and copies the other
def test_one_held_tensor_never_changes_while_a_hundred_go_by(framework, dtype):
    with Loader(Noise(dtype), 4, workers=Processes(2), prefetch=1, to=framework.name) as loader:
        iterator = iter(loader)
        next(iterator)
        held = next(iterator)
        assert next(iterator) is not None
        for _ in range(4):
            for _batch in loader:
                pass
        np.testing.assert_array_equal(framework.values(held), np.stack([Noise(dtype)[i] for i in range(4, 8)]))


@pytest.mark.parametrize(
    ("to", "device", "dtype"),
    [("tinygrad", None, "float32"), ("jax", None, "int64"), ("torch", "meta", "float32")],
    ids=["tinygrad copies", "JAX casts", "meta has no memory"],
)
def test_where_a_tensor_is_a_copy_its_slot_is_free_at_once(installed, to, device, dtype):
    """All tensors are held, and yet there are no more slots than workers fill and the two that may be on their way."""
    installed(to)
    with Loader(Noise(dtype), 4, workers=Processes(2), prefetch=2, to=to, device=device) as loader:
        held = [batch for _ in range(EPOCHS) for batch in loader]
        assert len(held) == 30 * EPOCHS
        assert len(slots()) <= 2 * 2 + 2


@pytest.mark.parametrize("turn", [np.flip, np.transpose], ids=["flipped", "transposed"])
def test_what_lies_in_another_order_is_right_even_when_its_array_is_gone(framework, make_leaf, is_held, turn):
    leaf = make_leaf((8, 4), "float32")
    held, expected = is_held(leaf), turn(leaf).copy()
    tensor = bridge(framework.name)({"x": turn(leaf)})["x"]
    del leaf
    if turn is np.flip:
        assert not held(), "no framework counts backwards: this is a copy"
    np.testing.assert_array_equal(framework.values(tensor), expected)


def test_views_and_results_of_a_tensor_may_outlive_it(sharing_framework):
    """A slice, or a reshaped tensor, reads the same memory or has its own; the bytes are right either way."""
    with Loader(Noise(), 4, workers=2, prefetch=1, to=sharing_framework.name) as loader:
        parts = [batch[1:3, ::7] for batch in loader]
        for _ in range(3):
            for _batch in loader:
                pass
    for step, part in enumerate(parts):
        expected = np.stack([Noise()[4 * step + k][::7] for k in (1, 2)])
        np.testing.assert_array_equal(np.asarray(part), expected)
