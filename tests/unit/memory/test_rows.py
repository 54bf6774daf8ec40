"""Lists of plain objects, which travel as one pickle: what comes back is the same as if each had travelled alone."""

from __future__ import annotations

import threading
from collections import OrderedDict
from datetime import date

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stoker import ShippingError
from stoker.collation.columns import Objects, Whole
from stoker.memory import rows
from stoker.memory.rows import are_rows
from tests.datasets import Pair, Record
from tests.unit.memory.test_codec import round_trip, slots

__all__ = ["slots"]

plain = st.recursive(
    st.text(max_size=3)
    | st.none()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.booleans()
    | st.binary(max_size=1),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=2) | st.integers(), inner, max_size=3)
    ),
    max_leaves=5,
)
odd = st.sampled_from([np.int64(3), OrderedDict(a=1), {1, 2}, bytearray(b"ab"), date(2024, 1, 1), Pair([1], 2)])


def kinds(tree):
    if isinstance(tree, dict):
        return type(tree), [(key, kinds(value)) for key, value in tree.items()]
    return (type(tree), list(map(kinds, tree))) if isinstance(tree, (list, tuple)) else type(tree)


@pytest.mark.parametrize("shared", [False, True])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(batch=st.lists(plain | plain | plain | odd, min_size=rows.FEW, max_size=12))
def test_a_list_of_samples_comes_back_as_it_was(slots, shared, batch):
    got, _, _ = round_trip(slots, batch, shared=shared)
    assert got == batch
    assert kinds(got) == kinds(batch)


@pytest.mark.parametrize("shared", [False, True])
def test_samples_that_are_one_object_come_back_as_two(slots, shared):
    sample = {"a": [1]}
    got, _, _ = round_trip(slots, [sample] * 10, shared=shared)
    got[0]["a"].append(2)
    assert got[1:] == [{"a": [1]}] * 9
    assert sample == {"a": [1]}


def test_writing_into_a_batch_does_not_change_the_sample_of_a_worker_in_the_same_process(slots):
    samples = [{"a": k} for k in range(10)]
    got, _, _ = round_trip(slots, samples, shared=True)
    got[0]["a"] = 7
    assert samples[0] == {"a": 0}


def test_arrays_in_a_list_of_samples_still_come_as_views(slots):
    got, root, _ = round_trip(slots, [{"x": np.full(3, k), "name": "n"} for k in range(10)])
    assert [one["x"].tolist() for one in got] == [[k] * 3 for k in range(10)]
    assert all(np.shares_memory(one["x"], root) for one in got)


def test_what_holds_itself_is_no_rows():
    inner: list = []
    inner.append(inner)
    assert not are_rows([inner])
    assert are_rows([[[1, "a"], (2, {"k": None})], 3])
    assert are_rows([(), (), ("a",)])


class Own:
    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return type(other) is Own and other.value == self.value

    __hash__ = None


def test_objects_of_any_class_are_rows_between_processes_and_handed_on_within_one(slots):
    samples = [{"own": Own(k), "at": date(2024, 1, 1 + k), "n": k} for k in range(10)]
    assert are_rows(samples, objects_too=True)
    assert not are_rows(samples)
    got, _, _ = round_trip(slots, samples)
    assert got == samples
    assert not any(one["own"] is sample["own"] for one, sample in zip(got, samples, strict=True))
    same, _, _ = round_trip(slots, samples, shared=True)
    assert all(one["own"] is sample["own"] for one, sample in zip(same, samples, strict=True))


def test_containers_of_other_classes_arrays_tensors_and_columns_are_no_objects():
    torch = pytest.importorskip("torch")
    others = [
        Pair(1, 2),
        Record(1, 2),
        OrderedDict(a=1),
        np.zeros(2),
        torch.zeros(2),
        Objects(["a"]),
        Whole(np.zeros(2)),
    ]
    for other in others:
        assert not are_rows([*range(10), other], objects_too=True)
        assert not are_rows([[1, other]] * 10, objects_too=True)


def test_one_that_cannot_be_pickled_is_named_in_a_list_of_samples(slots):
    samples = [{"own": Own(k)} for k in range(10)]
    samples[7]["own"] = threading.Lock()
    with pytest.raises(ShippingError, match=r"batch\[7\]\['own'\] is a lock that cannot be pickled"):
        round_trip(slots, samples)


@pytest.mark.parametrize(
    "wrap", [lambda own: {"a": own}, lambda own: [own, 1], lambda own: [[own]]], ids=["dict", "list", "lists"]
)
def test_within_a_process_objects_are_the_same_in_containers_of_their_own(slots, wrap):
    sample = wrap(Own(1))
    got, _, _ = round_trip(slots, [sample] * 10, shared=True)
    first = got[0]["a"] if isinstance(sample, dict) else got[0][0]
    key = "a" if isinstance(sample, dict) else 0
    assert first is sample[key] or isinstance(first, list)
    got[0][key] = None
    assert got[1:] == [wrap(Own(1))] * 9
    assert sample == wrap(Own(1))


def test_a_list_of_objects_is_another_list_within_a_process(slots):
    samples = [Own(k) for k in range(10)]
    got, _, _ = round_trip(slots, samples, shared=True)
    assert got is not samples
    assert all(one is sample for one, sample in zip(got, samples, strict=True))
