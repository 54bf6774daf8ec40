"""The stream of a mixture: segments of weights, sources at their own pace, from anywhere."""

from __future__ import annotations

from collections import Counter
from itertools import accumulate, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker.plan.mixed import ENDLESS, Mixed, MixedStream

SPAN = 6000
ways = st.sampled_from(["quota", "chance"])


def named(lengths):
    return tuple(f"source {number}" for number in range(len(lengths)))


@st.composite
def schedules(draw):
    sources = draw(st.integers(1, 5))
    weight = st.sampled_from([0.0, 1.0, 2.0]) | st.floats(0.001, 1)
    weights = st.lists(weight, min_size=sources, max_size=sources).filter(any).map(tuple)
    starts = [0, *sorted(draw(st.sets(st.integers(1, SPAN), max_size=4)))]
    return [(start, draw(weights)) for start in starts]


@settings(max_examples=60, deadline=None)
@given(schedules(), ways, st.integers(0, SPAN - 1), st.integers(0, SPAN), st.integers(0, 9))
def test_counts_and_sources_of_any_span_are_those_of_one_after_the_other(schedule, by, low, high, seed):
    stream = MixedStream.of(schedule, by, seed)
    sources, counts = (array.tolist() for array in stream.assigned(0, SPAN))
    naive = Counter[int]()
    for position, (source, count) in enumerate(zip(sources, counts, strict=True)):
        if position == low:
            assert stream.counts(low) == [naive[source] for source in range(len(schedule[0][1]))]
        assert count == naive[source]
        naive[source] += 1
    part = stream.assigned(low, max(low, high))
    assert part[0].tolist() == sources[low : max(low, high)]
    assert part[1].tolist() == counts[low : max(low, high)]


@settings(max_examples=60, deadline=None)
@given(schedules(), ways)
def test_quotas_hold_within_each_segment(schedule, by):
    """By quota at each position, by chance where a block of 4,096 positions ends."""
    stream = MixedStream.of(schedule, by, 3)
    ends = [*schedule, (SPAN + 4096, ())]
    for (start, weights), (stop, _) in pairwise(ends):
        for position in range(start, stop, 4096 if by == "chance" else 97):
            before, after = stream.counts(start), stream.counts(position)
            for source, weight in enumerate(weights):
                share = (position - start) * weight / sum(weights)
                assert abs(after[source] - before[source] - share) < 3


@pytest.mark.parametrize("size", [1, 8, 32, 100])
@pytest.mark.parametrize("ramp", [0, 1e-4])
def test_a_light_source_has_its_share_however_often_weights_are_set(size, ramp):
    """Of 8 positions a source of 1 % has 0.08, which must not be rounded off each time."""
    steps = [(0.6 - step * ramp, 0.39, 0.01 + step * ramp) for step in range(400)]
    stream = MixedStream.of([(step * size, weights) for step, weights in enumerate(steps)], "quota", 0)
    asked = np.cumsum([size * np.array(weights) for weights in steps], axis=0)
    had = np.array([stream.counts((step + 1) * size) for step in range(400)])
    assert np.abs(had - asked).max() < 1.5


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(2, 6), st.integers(1, 50))
def test_whatever_weights_follow_each_other_sources_keep_to_their_shares_in_all(data, sources, size):
    weight = st.sampled_from([0.0, 1.0, 2.0]) | st.floats(0.001, 1)
    weights = data.draw(st.lists(st.tuples(*[weight] * sources).filter(any), min_size=1, max_size=40))
    stream = MixedStream.of([(step * size, one) for step, one in enumerate(weights)], "quota", 0)
    asked = np.cumsum([size * np.array(one) / sum(one) for one in weights], axis=0)
    had = np.array([stream.counts((step + 1) * size) for step in range(len(weights))])
    assert np.abs(had - asked).max() < 3


@settings(max_examples=60, deadline=None)
@given(schedules(), ways, st.lists(st.integers(1, 300), min_size=5, max_size=5), st.sampled_from([False, True, 7]))
def test_each_source_goes_through_its_own_epochs(schedule, by, lengths, shuffle):
    """All samples of a source come once before any of them comes again, at whatever pace."""
    sources = len(schedule[0][1])
    lengths = tuple(lengths[:sources])
    stream = MixedStream.of(schedule, by, 3)
    order = Mixed(stream, named(lengths), lengths, first=0, positions=SPAN, shuffle=shuffle, seed=4)
    begins = [0, *accumulate(lengths)]
    own: list[list[int]] = [[] for _ in lengths]
    for source, index in zip(stream.assigned(0, SPAN)[0].tolist(), order.indices(0, SPAN), strict=True):
        own[source].append(index - begins[source])
    for found, length in zip(own, lengths, strict=True):
        for start in range(0, len(found) - length + 1, length):
            epoch = found[start : start + length]
            assert sorted(epoch) == list(range(length))
            if shuffle is False:
                assert epoch == list(range(length))
            elif shuffle is not True:
                assert all(abs(sample - place) < shuffle for place, sample in enumerate(epoch))


@settings(max_examples=60, deadline=None)
@given(schedules(), ways, st.integers(0, SPAN), st.integers(0, 300), st.integers(0, 10**15))
def test_indices_are_the_same_from_wherever_they_are_read(schedule, by, start, size, first):
    stream = MixedStream.of(schedule, by, 3)
    lengths = tuple(range(11, 11 + len(schedule[0][1])))
    whole = Mixed(stream, named(lengths), lengths, first=first, positions=2 * SPAN, shuffle=True, seed=4)
    part = Mixed(stream, named(lengths), lengths, first=first + start, positions=size, shuffle=True, seed=4)
    assert list(part.indices(0, size)) == list(whole.indices(start, start + size))


@settings(max_examples=40, deadline=None)
@given(schedules(), ways, st.integers(0, 4), st.integers(1, 400))
def test_the_position_after_which_a_source_has_so_many_samples(schedule, by, source, count):
    source %= len(schedule[0][1])
    stream = MixedStream.of(schedule, by, 3)
    found = stream.first_after(source, count)
    places = [place for place, one in enumerate(stream.assigned(0, SPAN)[0].tolist()) if one == source]
    if len(places) >= count:
        assert found == places[count - 1] + 1
    else:
        assert found is None or found > SPAN


def test_orders_of_a_source_differ_between_its_epochs_and_between_sources():
    stream = MixedStream.of([(0, (1.0, 1.0))], "quota", 0)
    found = list(Mixed(stream, ("a", "b"), (50, 50), first=0, positions=200, shuffle=True, seed=0).indices(0, 200))
    first, second = found[0::2], [index - 50 for index in found[1::2]]
    assert len({tuple(order) for order in (first[:50], first[50:], second[:50], second[50:])}) == 4


def test_by_chance_the_order_of_sources_is_drawn_from_the_seed():
    drawn = [MixedStream.of([(0, (0.5, 0.5))], "chance", seed).assigned(0, 64)[0].tolist() for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert drawn[0] not in ([0, 1] * 32, [1, 0] * 32)


def test_weights_that_are_set_drop_what_was_to_come_after_them():
    stream = MixedStream.of([(0, (1.0, 0.0)), (100, (0.5, 0.5))], "quota", 0).changed(50, (0.0, 1.0))
    assert stream.assigned(0, 200)[0].tolist() == [0] * 50 + [1] * 150


def test_a_position_far_out_costs_no_more_memory_than_the_first():
    stream = MixedStream.of([(0, (0.6, 0.4)), (10**15, (0.4, 0.6))], "quota", 0)
    order = Mixed(stream, ("a", "b"), (10**9, 10**9), first=10**17, positions=ENDLESS, shuffle=True, seed=0)
    assert len(set(order.indices(10**12, 10**12 + 256))) == 256


def test_a_batch_after_many_changes_of_weights_is_found_without_those_before(monkeypatch):
    """Weights that are set at every step: each change is looked at once, and not with every later batch."""
    asked = []
    shared_out = MixedStream.shared_out
    monkeypatch.setattr(MixedStream, "shared_out", lambda *span: asked.append(span[1:]) or shared_out(*span))
    stream = MixedStream.of([(step * 32, (0.5, 0.3, 0.2)) for step in range(200)], "quota", 0)
    order = Mixed(stream, named((9, 9, 9)), (9, 9, 9), first=0, positions=ENDLESS, shuffle=True, seed=0)
    order.indices(150 * 32, 151 * 32)
    order.indices(150 * 32 + 8, 151 * 32)
    assert asked == [(150 * 32, 151 * 32)]


def test_positions_outside_of_the_epoch_are_refused():
    order = Mixed(MixedStream.of([(0, (1.0,))], "quota", 0), ("a",), (5,), first=0, positions=10, shuffle=False, seed=0)
    with pytest.raises(ValueError, match="not within an epoch of 10"):
        order.indices(5, 11)


@pytest.mark.parametrize(
    ("by", "shuffle", "counts", "indices"),
    [
        ("quota", True, [102000, 101000, 797000], [322625, 1000666, 1005002, 1005002, 51038, 1005003]),
        ("quota", 9, [102000, 101000, 797000], [2499, 1001494, 1005003, 1005006, 2506, 1005000]),
        ("chance", True, [101958, 101015, 797027], [1005001, 1005001, 1001427, 1005002, 1005004, 1005003]),
        ("chance", 9, [101958, 101015, 797027], [1005001, 1005002, 1001512, 1005001, 1005003, 1005006]),
    ],
)
def test_the_formula_is_frozen(by, shuffle, counts, indices):
    """To change what follows is to raise PLAN_VERSION: runs would resume with other samples."""
    stream = MixedStream.of([(0, (0.5, 0.3, 0.2)), (5000, (0.1, 0.1, 0.8))], by, 7)
    names, lengths = ("web", "code", "books"), (10**6, 5000, 7)
    order = Mixed(stream, names, lengths, first=0, positions=10**7, shuffle=shuffle, seed=7)
    assert stream.counts(10**6) == counts
    assert list(order.indices(4998, 5004)) == indices
