"""Arrays one behind the other: each begins at a multiple of 64 bytes, none overlaps another, no memory is wasted."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stoker.memory.array_layout import ALIGN, aligned, lay_out

DTYPES = st.sampled_from([np.dtype(name) for name in ("u1", "<i2", "f4", "f8", "c16", "U3")])
SHAPES = st.lists(st.integers(0, 5), max_size=3).map(tuple)


@given(st.lists(st.none() | st.tuples(DTYPES, SHAPES), max_size=6))
def test_arrays_are_aligned_and_follow_each_other_as_closely_as_can_be(arrays):
    offsets, end = lay_out(arrays)
    expected = 0
    for array, offset in zip(arrays, offsets, strict=True):
        if array is not None:
            while expected % ALIGN:
                expected += 1
            assert offset == expected
            expected += np.empty(array[1], array[0]).nbytes
    assert end == expected


@given(st.integers(0, 10**12), st.integers(1, 10**5))
def test_aligned_is_the_next_multiple(nbytes, to):
    assert aligned(nbytes, to) % to == 0
    assert 0 <= aligned(nbytes, to) - nbytes < to
