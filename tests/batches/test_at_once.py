"""``collate(like="torch")`` outside a worker: what comes out is torch's own, down to the memory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="torch is not installed")

import stoker  # noqa: E402
from tests.torch_front.sameness import assert_same  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # of arrays that cannot be written to, torch warns
default_collate = torch.utils.data.default_collate

SHAPES = st.lists(st.integers(0, 4), max_size=4).map(tuple)
_PLAIN = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]
DTYPES = st.sampled_from([*_PLAIN, ">f4", "f16", "U3", "O", "M8[s]"])
LAYOUTS = st.sampled_from(["C", "F", "backwards", "apart", "read-only"])


def laid_out(shape, dtype, layout):
    array = np.ones(shape, dtype, order="F" if layout == "F" else "C")
    if layout == "backwards" and array.ndim:
        array = array[::-1]
    if layout == "apart" and array.ndim:
        array = np.repeat(array, 2, axis=-1)[..., ::2]
    array.flags.writeable = layout != "read-only"
    return array


def result_or_error(function, samples):
    try:
        return function(samples), None
    except Exception as error:
        return None, (type(error), str(error))


def same_as_torch(samples):
    found = result_or_error(lambda samples: stoker.collate(samples, like="torch"), samples)
    wanted = result_or_error(default_collate, samples)
    assert found[1] == wanted[1]
    assert_same(found[0], wanted[0])
    if isinstance(wanted[0], torch.Tensor):
        assert found[0].stride() == wanted[0].stride()


@given(st.lists(st.tuples(SHAPES, DTYPES, LAYOUTS), min_size=1, max_size=2), st.integers(1, 10))
@example([((1,), "?", "backwards")], 2)
def test_arrays_of_any_layout_are_stacked_as_by_torch(kinds, count):
    same_as_torch([laid_out(*kinds[k % len(kinds)]) for k in range(count)])


@pytest.mark.parametrize("size", [2**11, 2**11 + 1])
@pytest.mark.parametrize("layout", ["C", "F", "apart"])
def test_large_arrays_and_small_ones(size, layout):
    same_as_torch([laid_out((1, size), "f4", layout) for _ in range(9)])


@given(st.lists(st.one_of(st.integers(-(2**70), 2**70), st.booleans(), st.floats(allow_nan=False)), min_size=1))
def test_numbers_of_several_kinds(numbers):
    same_as_torch(numbers)


@pytest.mark.parametrize("count", [1, 7, 8, 9])
@pytest.mark.parametrize("number", [2**62, 2**64, True, 1.5, np.float32(2), np.uint64(3), np.float64(1), 1j, None])
def test_numbers_of_one_kind(number, count):
    same_as_torch([number] * count)


@pytest.mark.parametrize("sample", [1, 1.5, np.zeros(3), np.zeros(10_000), torch.zeros(3), np.int64(4)])
def test_a_batch_is_memory_of_its_own_that_can_be_resized(sample):
    batch = stoker.collate([sample] * 9, like="torch")
    batch[0] = 7
    assert not np.any(np.asarray(sample) == 7)
    batch.resize_(100_000)


@pytest.mark.parametrize("rows", [np.arange(40.0), np.arange(40).reshape(20, 2), torch.arange(40.0).view(20, 2)])
@pytest.mark.parametrize("chosen", [[3, 1, 1, 0, 19], np.array([4, 3, 2, 1], np.uint16)])
def test_rows_of_an_array_that_may_not_be_written_to(rows, chosen):
    if isinstance(rows, np.ndarray):
        rows.flags.writeable = False
    batch = stoker.collate(stoker.fetch(rows, chosen), like="torch")
    assert_same(batch, default_collate([rows[int(k)] for k in chosen]))
    batch.resize_(100_000)
