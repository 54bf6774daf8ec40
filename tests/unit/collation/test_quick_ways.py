"""The quick ways of the collation against its general way: the same batch, or the same error."""

from __future__ import annotations

import math
import sys
import threading
from collections import OrderedDict, UserDict, defaultdict
from datetime import date
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker import CollateError
from stoker.collation import collate, default, pad
from stoker.collation.columns import made
from stoker.collation.tree import container_class, items
from stoker.memory import Decoder, Encoder, Slots
from tests.datasets import Pair, Record

scalars = st.sampled_from(
    [0, 1, -7, 2**63 - 1, 2**63, 2**70, True, False, 0.5, math.nan, 1j, None, "text", "", b"bytes", date(2024, 1, 2)]  # noqa: RUF005
    + [np.int64(3), np.int8(3), np.uint64(2**63), np.float32(0.5), np.float64(0.5), np.float16(0.5), np.bool_(True)]
    + [np.str_("text"), np.bytes_(b"b"), np.datetime64("2024-01-02"), np.longdouble(1), np.complex64(1)]
)
small_arrays = st.sampled_from(
    [np.zeros(shape, dtype) for shape in [(), (2,), (3,), (2, 3), (2, 0), (0,)] for dtype in (np.float32, np.int64)]
    + [np.zeros(2), np.zeros(2, ">i4"), np.array(["a", "bb"]), np.array([None, 1]), np.zeros(2, [("a", int)])]
    + [np.ma.masked_array([1, 2], [True, False]), np.zeros(2, "M8[s]"), np.zeros((2, 4))[:, ::2]]
)
leaves = st.one_of(scalars, small_arrays)


def containers(children):
    names = st.sampled_from(["x", "y", 1])
    return st.one_of(
        st.lists(children, max_size=3),
        st.lists(children, max_size=3).map(tuple),
        st.builds(Pair, children, children),
        st.builds(Record, children, children),
        st.dictionaries(names, children, max_size=3),
        st.dictionaries(st.sampled_from("abcdefgh"), children, min_size=6, max_size=7),
        st.dictionaries(names, children, max_size=3).map(OrderedDict),
        st.dictionaries(names, children, max_size=3).map(UserDict),
        st.dictionaries(names, children, max_size=3).map(lambda kept: defaultdict(int, kept)),
    )


trees = st.recursive(leaves, containers, max_leaves=6)


@st.composite
def batches(draw, sample=trees):
    """Samples that are mostly all alike, with now and then one that is not."""
    usual = draw(sample)
    others = draw(st.lists(st.one_of(sample, st.just(usual), st.just(usual)), max_size=4))
    return [usual] * draw(st.integers(1, 3)) + others


def outcome(collation, samples):
    try:
        return described(made(collation(samples)))
    except CollateError as error:
        return f"CollateError: {error}"


def described(tree):
    """A batch as something that can be compared: classes, types, shapes and values."""
    if container_class(tree) is not None:
        keys, children = items(tree)
        return type(tree), keys, [described(child) for child in children]
    if isinstance(tree, np.ndarray):
        return type(tree), tree.dtype.str, tree.shape, repr(tree.tolist())  # no bytes: a longdouble has some unused
    if hasattr(tree, "requires_grad"):
        return type(tree), tree.dtype, tree.shape, tree.layout, tree.requires_grad, repr(tree)
    return type(tree), repr(tree)


def general(samples, collation=collate):
    """The general way, with all the quick ones closed."""
    with (
        mock.patch.object(default, "columns_of", return_value=None),
        mock.patch.object(default, "array_of", return_value=None),
        mock.patch.object(default, "are_simple", return_value=False),
        mock.patch.object(default, "is_judged", return_value=False),
        mock.patch.object(default, "_PLAIN_TEXTS", set()),
    ):
        return outcome(collation, samples)


@given(samples=batches())
@settings(max_examples=400)
def test_a_quick_way_gives_what_the_general_way_gives(samples):
    assert outcome(collate, samples) == general(samples)


@given(samples=batches(st.one_of(small_arrays, st.tuples(small_arrays, scalars))))
def test_pad_gives_what_it_gives_in_the_general_way(samples):
    assert outcome(pad, samples) == general(samples, pad)


@given(values=st.lists(scalars, min_size=1, max_size=6))
def test_a_column_of_numbers_of_several_kinds_is_what_the_general_way_makes_of_it(values):
    assert outcome(collate, values) == general(values)


def some_tensors():
    torch = pytest.importorskip("torch")
    usual = [torch.zeros(shape, dtype=dtype) for shape in [(), (1,), (3,), (2, 3)] for dtype in (torch.float32,)]
    dtypes = torch.int64, torch.bool, torch.bfloat16, torch.float64, torch.uint8, torch.complex64, torch.float8_e5m2
    return [
        *usual,
        *(torch.ones((), dtype=torch.float32).to(dtype) for dtype in dtypes),
        *(torch.ones(3, dtype=torch.float32).to(dtype) for dtype in dtypes),
        torch.ones(3, dtype=torch.complex64).conj(),
        torch.ones(3, requires_grad=True),
        torch.ones((), requires_grad=True),
        torch.nn.Parameter(torch.ones(3)),
        torch.ones(3).to_sparse(),
        torch.ones(3, device="meta"),
        torch.ones(6)[::2],
        torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8),
        np.ones(3, np.float32),
        1.0,
        None,
    ]


@pytest.mark.filterwarnings("ignore")  # torch's own, on types that it is going to drop
def test_tensors_of_any_two_kinds_give_what_the_general_way_gives():
    tensors = some_tensors()
    for usual in tensors:
        for other in tensors:
            for samples in ([usual, usual], [usual, usual, other], [(usual, 1), (usual, 2), (other, 3)]):
                assert outcome(collate, samples) == general(samples), samples


@pytest.mark.parametrize("mode", ["enable_grad", "no_grad", "inference_mode"])
def test_a_batch_of_tensors_asks_for_gradients_if_one_does_and_they_are_not_switched_off(mode):
    torch = pytest.importorskip("torch")
    plain, learning = torch.ones(3), torch.ones(3, requires_grad=True)
    numbers = torch.ones(()), torch.ones((), requires_grad=True)
    for first, second in ((plain, learning), (learning, plain), numbers, numbers[::-1], (plain, plain)):
        samples = [{"x": first, "y": 1}, {"x": second, "y": 2}]
        with getattr(torch, mode)():
            assert outcome(collate, samples) == general(samples)
        slots = Slots.create()
        slot = slots.get(0)
        with getattr(torch, mode)():
            packed = Encoder().encode(collate(samples), slot)
        batch = Decoder().decode(packed, slot.view(), np.frombuffer(slot.view().buffer, np.uint8, packed.nbytes))
        slots.close()
        assert batch["x"].requires_grad == (mode == "enable_grad" and (first.requires_grad or second.requires_grad))
        assert batch["x"].tolist() == [first.tolist(), second.tolist()]
        assert batch["y"].tolist() == [1, 2]


_GRID = np.arange(24).reshape(4, 6)


@pytest.mark.parametrize("size", [1, 2**13], ids=["joined", "concatenated"])
@pytest.mark.parametrize(
    "array",
    [
        pytest.param(_GRID.astype(">i4"), id="big-endian"),
        pytest.param(_GRID.astype("f2"), id="float16"),
        pytest.param(_GRID.astype("c8"), id="complex"),
        pytest.param(_GRID.astype("M8[s]"), id="dates"),
        pytest.param(_GRID.astype("U5"), id="texts"),
        pytest.param(_GRID.astype([("a", "i1"), ("b", "f8")]), id="records"),
        pytest.param(np.asfortranarray(_GRID), id="Fortran"),
        pytest.param(_GRID[::-1, ::2], id="strided"),
        pytest.param(_GRID[:, :0], id="empty"),
        pytest.param(_GRID[0, 0:1].reshape(()), id="no axes"),
        pytest.param(np.broadcast_to(np.int16(3), (4, 6)), id="broadcast"),
    ],
)
def test_arrays_are_stacked_the_same_by_whichever_way(array, size):
    """Small columns are joined as bytes, where the arrays allow it, and large ones by numpy."""
    samples = [array, array.copy()] * size
    found, wanted = made(collate(samples)), np.stack(samples).astype(array.dtype)  # numpy turns bytes round
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    assert found.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("other", [(6, 1), (1, 6), (2, 3), (5,), (7,), (0,), ()], ids=repr)
def test_arrays_with_as_many_bytes_and_another_shape_are_ragged(other):
    samples = [np.zeros(6, "i2"), np.zeros(other, "i2"), np.zeros(12 - int(np.prod(other)), "i2")]
    with pytest.raises(CollateError, match=r"shape \(6,\) in sample 0 and \([\d, ]*\) in sample 1"):
        made(collate(samples))


@pytest.mark.parametrize("collation", [collate, pad])
def test_records_beside_objects_are_an_error_that_says_so(collation):
    samples = [np.zeros(2, [("a", "i8")]), np.array([None, 1], object)]
    with pytest.raises(CollateError, match="no type in common"):
        collation(samples)


def test_lists_stay_lists_while_another_thread_meets_class_after_class():
    over, misread = threading.Event(), set()

    def look():
        while not over.is_set():
            misread.update({list, dict, tuple} - {container_class([]), container_class({}), container_class(())})

    before, looking = sys.getswitchinterval(), threading.Thread(target=look)
    sys.setswitchinterval(1e-6)
    try:
        looking.start()
        for _ in range(20_000):  # of which some 1,000 are remembered
            assert container_class(type("Own", (), {})()) is None
    finally:
        over.set()
        looking.join()
        sys.setswitchinterval(before)
    assert not misread
