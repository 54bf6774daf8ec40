"""Rows of packed sequences, against a naive model."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.plan.packing import Layout, lay_out

windows = st.lists(st.integers(0, 40), max_size=60)
row_lengths = st.integers(1, 16)
policies = st.sampled_from(["split", "truncate", "drop"])


def pieces(layout: Layout) -> list[tuple[int, int, int, int]]:
    """(row, sequence, start, size) of each."""
    fields = layout.rows, layout.sequences, layout.starts, layout.sizes
    return list(zip(*(field.tolist() for field in fields), strict=True))


def wanted_tokens(lengths: list[int], length: int, long: str) -> Counter[tuple[int, int]]:
    """(sequence, place in it) of each token that shall be in a row."""
    kept = {
        "split": lambda size: size,
        "truncate": lambda size: min(size, length),
        "drop": lambda size: size if size <= length else 0,
    }[long]
    return Counter((sequence, place) for sequence, size in enumerate(lengths) for place in range(kept(size)))


@given(windows, row_lengths, policies)
def test_each_token_is_in_one_row_once_but_for_those_that_were_to_be_dropped(lengths, length, long):
    layout = lay_out(np.array(lengths, np.int64), length, long)
    found = Counter((sequence, start + nth) for _, sequence, start, size in pieces(layout) for nth in range(size))
    assert found == wanted_tokens(lengths, length, long)


@given(windows, row_lengths, policies)
def test_no_row_is_over_its_length_and_none_is_empty(lengths, length, long):
    layout = lay_out(np.array(lengths, np.int64), length, long)
    used = Counter()
    for row, _, _, size in pieces(layout):
        used[row] += size
    assert [used[row] for row in range(layout.count)] == (length - layout.padding).tolist()
    assert all(0 < used[row] <= length for row in range(layout.count))
    assert set(used) == set(range(layout.count))


@given(windows, row_lengths, policies)
def test_only_long_sequences_are_split_and_pieces_of_a_row_are_in_the_order_of_their_sequences(lengths, length, long):
    layout = lay_out(np.array(lengths, np.int64), length, long)
    found = pieces(layout)
    for _, sequence, start, size in found:
        assert start % length == 0
        assert size == min(length, lengths[sequence] - start)
    assert found == sorted(found)
    assert layout.firsts.tolist() == [sum(row < n for row, *_ in found) for n in range(layout.count + 1)]


@given(windows, row_lengths)
def test_rows_are_those_of_best_fit_decreasing(lengths, length):
    """The naive way: each piece, the longest first, into the fullest row that has the space."""
    sizes = [size for size in lengths if 0 < size <= length]
    rows: list[list[int]] = []
    for size in sorted(sizes, reverse=True):
        free = [length - sum(row) for row in rows]
        fits = [space for space in free if space >= size]
        if fits:
            rows[free.index(min(fits))].append(size)
        else:
            rows.append([size])
    layout = lay_out(np.array(lengths, np.int64), length, "drop")
    found = [[] for _ in range(layout.count)]
    for row, _, _, size in pieces(layout):
        found[row].append(size)
    assert Counter(tuple(sorted(row)) for row in found) == Counter(tuple(sorted(row)) for row in rows)


@given(windows, row_lengths, policies)
def test_a_row_stands_where_its_longest_piece_stands(lengths, length, long):
    layout = lay_out(np.array(lengths, np.int64), length, long)
    longest: dict[int, tuple[int, int, int]] = {}
    for row, sequence, start, size in pieces(layout):
        longest[row] = min(longest.get(row, (0, 0, 0)), (-size, sequence, start))
    places = [longest[row][1:] for row in range(layout.count)]
    assert places == sorted(places)


@pytest.mark.parametrize("long", ["split", "truncate", "drop"])
@pytest.mark.parametrize("median", [90, 250, 600, 1500])
def test_of_log_normal_lengths_in_rows_of_2048_at_least_97_percent_are_used(median, long):
    lengths = np.random.default_rng(0).lognormal(np.log(median), 1.0, 8 * 1024).astype(np.int64)
    layouts = [lay_out(lengths[first : first + 1024], 2048, long) for first in range(0, len(lengths), 1024)]
    used = sum(layout.sizes.sum() for layout in layouts)
    assert used >= 0.97 * 2048 * sum(layout.count for layout in layouts)
