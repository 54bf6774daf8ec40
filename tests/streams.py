"""Comparing what loaders deliver: by value, by order, by type."""

from __future__ import annotations

from typing import Any

import numpy as np

from stoker.collate.tree import flatten, map_leaves


def kept(batch: Any) -> Any:
    """A copy that outlives the slot."""
    return map_leaves(lambda leaf: leaf.copy() if isinstance(leaf, np.ndarray) else leaf, batch)


def epochs(loader: Any, count: int) -> list[list[Any]]:
    return [[kept(batch) for batch in loader] for _ in range(count)]


def assert_same(got: Any, expected: Any) -> None:
    """The same tree: containers, order, types, shapes and values."""
    got_leaves, got_shape = flatten(got)
    expected_leaves, expected_shape = flatten(expected)
    assert got_shape == expected_shape
    for mine, theirs in zip(got_leaves, expected_leaves, strict=True):
        assert type(mine) is type(theirs)
        if isinstance(theirs, np.ndarray):
            assert mine.dtype == theirs.dtype
            np.testing.assert_array_equal(mine, theirs)
        else:
            assert mine == theirs
