"""Groups hold each part once an epoch; strands stay in order, side by side."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stoker.plan.groups import Groups

lengths = st.lists(st.integers(1, 6), min_size=1, max_size=12)  # of strands, in parts


def order(groups: Groups) -> list[int]:
    return [part for group in range(len(groups)) for part in groups.parts(group)]


def strands_of(lengths: list[int]) -> np.ndarray:
    return np.repeat(np.arange(len(lengths)), lengths)


@given(lengths, st.integers(1, 5), st.booleans(), st.integers(0, 9), st.integers(1, 5))
def test_each_part_is_in_one_group(lengths, interleave, shuffle, seed, abreast):
    strands = strands_of(lengths)
    groups = Groups(np.full(len(strands), 5), interleave, shuffle, seed, 0, strands, abreast)
    found = order(groups)
    assert sorted(found) == list(range(len(strands)))
    if not shuffle:
        assert found == sorted(found)


@given(lengths, st.integers(1, 5), st.integers(0, 9), st.integers(1, 5))
def test_shuffled_strands_are_read_side_by_side_each_in_its_order(lengths, interleave, seed, abreast):
    """Against a naive model: so many strands at a time, a part of each in turn."""
    strands = strands_of(lengths)
    firsts = np.searchsorted(strands, np.arange(len(lengths)))
    found = order(Groups(np.full(len(strands), 5), interleave, True, seed, 1, strands, abreast))
    permuted = [int(strands[part]) for part in found if part in firsts]  # strands, as they are begun
    model: list[int] = []
    for at in range(0, len(lengths), abreast):
        window = permuted[at : at + abreast]
        for nth in range(max(lengths)):
            model += [int(firsts[strand]) + nth for strand in window if nth < lengths[strand]]
    assert found == model


@given(st.lists(st.integers(-1, 10**7), max_size=30), st.integers(1, 5), st.integers(0, 3), st.integers(0, 3))
def test_where_no_strand_has_two_parts_strands_change_nothing(sizes, interleave, seed, epoch):
    """Contract: files that are not cut come in the order in which they came before files could be cut."""
    arguments = np.array(sizes, np.int64), interleave, True, seed, epoch
    assert order(Groups(*arguments, np.arange(len(sizes)), 1)) == order(Groups(*arguments))


def test_the_order_of_files_is_frozen():
    """A state that was saved within an epoch, by any version, leads to the same place."""
    found = Groups(np.full(10, 2**22), 4, True, seed=3, epoch=1)
    assert [found.parts(group) for group in range(len(found))] == FROZEN


FROZEN = [[5, 1, 9, 6], [7, 4, 8, 3], [0, 2]]
