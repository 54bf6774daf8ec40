"""Samples without batches go through default_convert; what it makes of each type is what torch makes of it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.torch_front.datasets import Held
from tests.torch_front.sameness import assert_same
from tests.torch_front.samples import COLLATED, REFUSED, SPECIAL, UNSENDABLE, Point

torch = pytest.importorskip("torch", reason="torch is not installed")
data = torch.utils.data

KNOWN = {**COLLATED, **REFUSED, **SPECIAL}


def outcome(make):
    try:
        return make()
    except Exception as error:
        return type(error)


WITH_GAPS = {"strided tensors", "expanded tensors", "strided arrays", "empty arrays"}


def converted(kind, sample, workers):
    (result,) = kind(Held([sample]), batch_size=None, num_workers=workers)
    return result


@pytest.mark.parametrize("name", KNOWN)
def test_a_sample_is_converted_inline(loader_class, name):
    sample = KNOWN[name][0]
    expected = outcome(lambda: data.default_convert(sample))
    assert_same(outcome(lambda: converted(loader_class, sample, 0)), expected)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", [name for name in KNOWN if name not in UNSENDABLE])
def test_a_sample_is_converted_in_a_worker(loader_class, our_class, name):
    sample = KNOWN[name][0]
    expected = outcome(lambda: data.default_convert(sample))
    if loader_class is our_class and name in WITH_GAPS:  # which docs/migrate/torch.md says
        expected = torch.empty(expected.shape, dtype=expected.dtype).copy_(expected)
    assert_same(outcome(lambda: converted(loader_class, sample, 1)), expected)


def test_numbers_and_texts_are_left_alone(loader_class, num_workers):
    for sample in [1, 1.5, True, "text", b"bytes", None, 1j]:
        assert_same(converted(loader_class, sample, num_workers), sample)


def test_tuples_become_lists_but_namedtuples_do_not(loader_class, num_workers):
    assert_same(converted(loader_class, (np.arange(2), 1), num_workers), [torch.arange(2), 1])
    assert_same(converted(loader_class, Point(np.arange(2), 1), num_workers), Point(torch.arange(2), 1))


def test_arrays_of_text_and_objects_are_left_alone(loader_class, num_workers):
    for array in [np.array(["a", "b"]), np.array([None, 1], object)]:
        assert_same(converted(loader_class, array, num_workers), array)


def test_inline_a_tensor_is_handed_on_itself(loader_class):
    tensor = torch.ones(3)
    assert converted(loader_class, tensor, 0) is tensor


def test_inline_an_array_is_handed_on_without_a_copy(loader_class):
    array = np.zeros(3)
    result = converted(loader_class, array, 0)
    result += 1
    assert array.tolist() == [1, 1, 1]


def test_a_sampler_of_batches_gives_converted_results(loader_class, num_workers):
    class Table:
        rows = np.arange(10)

        def __len__(self):
            return 10

        def __getitem__(self, indices):
            return {"rows": self.rows[indices], "name": "x"}

    sampler = data.BatchSampler(data.SequentialSampler(range(10)), 4, True)
    loader = loader_class(Table(), batch_size=None, sampler=sampler, num_workers=num_workers)
    expected = [{"rows": torch.arange(start, start + 4), "name": "x"} for start in (0, 4)]
    assert_same(list(loader), expected)
