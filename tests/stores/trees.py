"""Any sample: trees of arrays of any kind, numbers, strings and bytes, for Hypothesis."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

SHAPES = arrays_of.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
SCALAR_DTYPES = arrays_of.scalar_dtypes() | st.sampled_from(["S5", "U3", "g", "G"]).map(np.dtype)
DTYPES = arrays_of.nested_dtypes(SCALAR_DTYPES, max_leaves=4)


@st.composite
def arrays(draw):
    """Also with strides that are not C's: turned round, transposed, every other one."""
    array = draw(arrays_of.arrays(draw(DTYPES), draw(SHAPES)))
    how = draw(st.sampled_from(["as it is", "backwards", "transposed", "every other"]))
    if how == "transposed" or not array.ndim:
        return array.T
    return array if how == "as it is" else array[:: -1 if how == "backwards" else 2]


NUMPY_SCALARS = SCALAR_DTYPES.flatmap(arrays_of.from_dtype)
TEXTS = st.text(st.characters(exclude_categories=()), max_size=8)  # halves of surrogate pairs included
INTEGERS = st.integers() | st.sampled_from([2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 7**900])
VALUES = st.none() | st.booleans() | INTEGERS | st.floats() | st.complex_numbers() | TEXTS | st.binary(max_size=8)

KEYS = st.text(max_size=4) | st.integers(-2, 2) | st.sampled_from([0.0, 1.0, 2.5]) | st.booleans() | st.none()


def trees(leaves):
    def containers(inside):
        dicts = st.dictionaries(KEYS | st.binary(max_size=2), inside, max_size=3)
        lists = st.lists(inside, max_size=3)
        return dicts | dicts.map(OrderedDict) | lists | lists.map(tuple)

    return st.recursive(leaves, containers, max_leaves=6)


SAMPLES = trees(VALUES | NUMPY_SCALARS | arrays())
