"""What takes the place of a sample that fails: others, each once, the same wherever it is worked out."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from stoker.plan import MOST_REPLACEMENTS, replacements

ranges = st.builds(lambda start, size: range(start, start + size), st.integers(0, 10**12), st.integers(1, 40))


@given(st.integers(), st.integers(0, 10**6), ranges, st.data())
def test_they_are_other_samples_of_the_range_each_once_and_all_if_they_are_few(seed, epoch, among, data):
    index = data.draw(st.sampled_from(among))
    found = list(replacements(seed, epoch, index, among))
    assert max(Counter(found).values(), default=1) == 1
    assert all(one in among and one != index for one in found)
    assert len(found) == min(len(among) - 1, MOST_REPLACEMENTS)
    assert found == list(replacements(seed, epoch, index, among))


def test_they_differ_from_epoch_to_epoch_seed_to_seed_and_sample_to_sample():
    drawn = {tuple(replacements(s, e, i, range(10**9))) for s in range(5) for e in range(5) for i in range(5)}
    assert len(drawn) == 125


def test_they_are_spread_evenly():
    many = Counter(next(replacements(seed, 0, 3, range(10))) for seed in range(9000))
    assert all(abs(many[index] - 1000) < 150 for index in range(10) if index != 3)


def test_the_formula_stays_the_same():
    """A run that is resumed with a later version must get the same replacements."""
    assert list(replacements(7, 2, 11, range(1000))) == [306, 539, 546, 207, 273, 37, 553, 71]
