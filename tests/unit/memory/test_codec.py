"""Batches in and out of slots: what was encoded is what is decoded, in views of one root."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from stoker import ShippingError
from stoker.collation import Objects
from stoker.collation.tree import flatten
from stoker.memory import Decoder, Encoder, Leases, Slots, codec
from tests.datasets import Pair, Record


@pytest.fixture
def slots():
    slots = Slots.create()
    yield slots
    slots.close()


def round_trip(slots, batch, number=0, offset=0, shared=False):
    slot, leases = slots.get(number), Leases()
    packed = Encoder(shared=shared).encode(batch, slot, offset)
    leases.open(number, 1)
    root = leases.root(number, slot.view(), packed.offset, packed.nbytes)
    return Decoder().decode(packed, slot.view(), root), root, packed


leaves = arrays.arrays(
    st.sampled_from([np.uint8, np.int64, np.float32, np.bool_, "M8[ns]", "c16", "U2", [("a", "i4"), ("b", "f8")]]),
    arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5),
)
batches = st.recursive(
    leaves | st.text(max_size=3) | st.none() | st.binary(max_size=3) | st.integers(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=2), inner, max_size=3)
        | st.builds(Pair, inner, inner)
        | st.builds(Record, inner, inner)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize("shared", [False, True])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(batch=batches, offset=st.sampled_from([0, 64, 8192]))
def test_any_tree_comes_back_as_it_was(slots, shared, batch, offset):
    got, root, _ = round_trip(slots, batch, offset=offset, shared=shared)
    expected_leaves, expected_shape = flatten(batch)
    got_leaves, got_shape = flatten(got)
    assert got_shape == expected_shape
    for mine, theirs in zip(got_leaves, expected_leaves, strict=True):
        assert type(mine) is type(theirs)
        if isinstance(theirs, np.ndarray):
            assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
            assert mine.tobytes() == theirs.tobytes()
            assert mine.base is root
            assert mine.flags.writeable
            assert mine.size == 0 or mine.ctypes.data % 64 == 0
        else:
            assert mine == theirs


def test_the_layout_is_pickled_once(slots):
    encoder, decoder, leases, slot = Encoder(), Decoder(), Leases(), slots.get(0)
    leases.open(0, 3)
    seen = []
    for k in range(3):
        packed = encoder.encode({"x": np.full(4, k)}, slot, 1024 * k)
        root = leases.root(0, slot.view(), packed.offset, packed.nbytes)
        seen.append(decoder.decode(packed, slot.view(), root)["x"].tolist())
    assert seen == [[0] * 4, [1] * 4, [2] * 4]
    assert len(encoder._layouts) == len(decoder._layouts) == 1


def test_layouts_that_never_come_again_do_not_pile_up(slots):
    encoder, decoder, leases, slot = Encoder(), Decoder(), Leases(), slots.get(0)
    leases.open(0, 40)
    for k in range(40):
        packed = encoder.encode([np.zeros(1 + k)] * 2000, slot)
        decoder.decode(packed, slot.view(), leases.root(0, slot.view(), packed.offset, packed.nbytes))
    assert sum(len(layout.leaves) for layout, _ in encoder._layouts.values()) < 2**15
    assert sum(len(layout.leaves) for layout in decoder._layouts.values()) < 2**15


def test_a_slot_grows_when_a_batch_does_not_fit_and_stays_that_size(slots):
    capacities = []
    for size in (10, 100_000, 10):
        round_trip(slots, np.zeros(size, np.uint8))
        capacities.append(slots.get(0).capacity)
    assert capacities[0] < 100_000 <= capacities[1] == capacities[2]


def test_what_lies_in_a_slot_stays_when_it_grows(slots):
    first, _, packed = round_trip(slots, np.full(5000, 1, np.uint8))
    second, _, _ = round_trip(slots, np.full(500_000, 2, np.uint8), offset=-(-packed.end // 64) * 64)
    assert (first == 1).all()
    assert (second == 2).all()


def test_neighbouring_slots_do_not_touch(slots):
    first, _, _ = round_trip(slots, np.full(5000, 1, np.uint8), number=0)
    second, _, _ = round_trip(slots, np.full(5000, 2, np.uint8), number=1)
    assert (first == 1).all()
    assert (second == 2).all()


def test_what_cannot_be_pickled_is_an_error_with_the_leafs_path(slots):
    with pytest.raises(ShippingError, match=r"batch\['a'\]\[1\] is a lock"):
        round_trip(slots, {"a": [np.zeros(1), threading.Lock()]})


def test_object_arrays_and_masked_arrays_travel_beside(slots):
    objects = np.array([{"a": 1}, None], object)
    masked = np.ma.masked_array([1, 2], [True, False])
    got, _, packed = round_trip(slots, [objects, masked])
    assert packed.nbytes == 0
    assert got[0].tolist() == objects.tolist()
    assert got[1].mask.tolist() == [True, False]


def test_tensors_come_back_as_tensors():
    torch = pytest.importorskip("torch")
    slots = Slots.create()
    batch = {"b": torch.ones(3, dtype=torch.bfloat16), "c": torch.arange(4).reshape(2, 2).T, "e": torch.empty(0, 3)}
    got, _, _ = round_trip(slots, batch)
    assert {key: (value.dtype, value.shape) for key, value in got.items()} == {
        key: (value.dtype, value.shape) for key, value in batch.items()
    }
    assert all(torch.equal(got[key], batch[key]) for key in batch)
    slots.close()


@pytest.mark.parametrize("odd", ["", "ä漢\U0001f600", "\ud800", "a\0b"], ids=ascii)
@pytest.mark.parametrize("count", [1, 255, 256, 5000])
def test_strings_come_back_as_they_were_however_many(slots, odd, count):
    values = [odd, *map(str, range(count - 1))]
    assert round_trip(slots, {"text": Objects(values)})[0] == {"text": values}


def test_so_do_strings_among_other_objects(slots):
    values = [None, b"bytes", *map(str, range(300))]
    assert round_trip(slots, [Objects(values)])[0] == [values]


@pytest.mark.parametrize("sizes", [[2**14], [2**14 - 1], [3, 2**17, 0, 2**15], [2**20]], ids=str)
def test_bytes_come_back_as_they_were_however_large(slots, sizes):
    values = [np.random.default_rng(size).bytes(size) for size in sizes]
    texts = [*map(str, range(300))]
    batch = {
        "texts": Objects(texts),
        "files": Objects(values),
        "first": values[0],
        "array": np.arange(3),
        "last": values[-1],
    }
    got = round_trip(slots, batch)[0]
    assert got["array"].tolist() == [0, 1, 2]
    assert {name: got[name] for name in got if name != "array"} == {
        "texts": texts,
        "files": values,
        "first": values[0],
        "last": values[-1],
    }
    assert type(got["first"]) is bytes


def test_large_bytes_are_not_pickled(slots, monkeypatch):
    pickled = []
    dumps = codec.dumps
    monkeypatch.setattr(codec, "dumps", lambda value: pickled.append(len(dumps(value))) or dumps(value))
    round_trip(slots, [bytes(2**20), Objects([bytes(2**16)] * 4)])
    assert sum(pickled) < 2**12


class Holder:
    """An object that no codec knows."""

    def __init__(self, held):
        self.held = held


def tensors_of_all_sorts(torch):
    whole = torch.arange(4096, dtype=torch.float32).reshape(16, 256)
    named = torch.arange(3.0)
    named.note = "mine"
    return {
        "a row": whole[3],
        "every other one": whole[3, ::2],
        "transposed": whole.t(),
        "channels last": whole.reshape(2, 4, 8, 64).to(memory_format=torch.channels_last),
        "no axes": torch.tensor(5),
        "empty": torch.zeros(0, 3),
        "bfloat16": whole[1].bfloat16(),
        "bool": whole[1] > 300,
        "complex": torch.complex(whole[0], whole[1]),
        "conjugated": torch.complex(whole[0], whole[1]).conj(),
        "with gradients": torch.ones(3, requires_grad=True),
        "a parameter": torch.nn.Parameter(torch.ones(3)),
        "sparse": torch.eye(3).to_sparse(),
        "with an attribute": named,
    }


def test_tensors_in_objects_come_back_as_they_were(slots):
    torch = pytest.importorskip("torch")
    for name, tensor in tensors_of_all_sorts(torch).items():
        encoder, slot = Encoder(), slots.get(0)
        for _ in range(2):  # the second time it is known that there are some
            packed = encoder.encode([Holder(tensor), "a"], slot)
            root = np.frombuffer(slot.view().buffer, np.uint8, packed.nbytes, packed.offset)
            found = Decoder().decode(packed, slot.view(), root)[0].held
            assert type(found) is type(tensor), name
            assert found.dtype == tensor.dtype, name
            assert found.layout == tensor.layout, name
            assert found.requires_grad == tensor.requires_grad, name
            assert torch.equal(found.to_dense(), tensor.to_dense()), name
            assert vars(found) == vars(tensor), name
            if tensor.layout is torch.strided and not name.startswith("every"):
                assert found.stride() == tensor.stride(), name


def test_a_tensor_in_an_object_takes_no_more_room_than_its_elements(slots):
    torch = pytest.importorskip("torch")
    whole = torch.zeros(1000, 1000)
    packed = round_trip(slots, [Holder(row) for row in whole[:10]])[2]
    assert packed.end < 2 * 10 * 4000


def test_a_tensor_in_an_object_is_its_holders_own(slots):
    torch = pytest.importorskip("torch")
    found = round_trip(slots, [Holder(torch.zeros(5)[1:3]), "a"])[0][0].held
    found.resize_(100)
    found[:] = 1
    assert found.sum() == 100


def test_what_only_cloudpickle_can_pickle_may_hold_tensors_too(slots):
    torch = pytest.importorskip("torch")

    class Local:
        def __init__(self, held):
            self.held = held

    found = round_trip(slots, [Local(torch.arange(3)), "a"])[0][0].held
    assert found.tolist() == [0, 1, 2]
