"""The search for the sample that kills, against every way it can turn out."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from stoker.engine.search import Search


def run(search: Search, kills) -> tuple[int, int]:
    """Tries and deaths until it is over."""
    tries = deaths = 0
    while search.probe:
        died = kills(search.probe)
        tries += 1
        deaths += died
        search.note(died=died)
    return tries, deaths


@given(st.sets(st.integers(0, 500), min_size=2, max_size=64).map(sorted), st.data())
def test_the_guilty_one_is_found_in_few_tries(suspects, data):
    guilty = data.draw(st.sampled_from(suspects))
    search = Search(suspects)
    tries, _ = run(search, lambda probe: guilty in probe)
    assert search.guilty == guilty
    assert tries <= math.ceil(math.log2(len(suspects))) + 1


@given(st.integers(2, 64), st.data())
def test_of_several_guilty_ones_one_is_found(count, data):
    guilty = data.draw(st.sets(st.integers(0, count - 1), min_size=1))
    search = Search(range(count))
    run(search, lambda probe: bool(guilty & set(probe)))
    assert search.guilty in guilty


@given(st.integers(2, 64))
def test_if_only_all_together_kill_nobody_is_blamed(count):
    search = Search(range(count))
    run(search, lambda probe: len(probe) == count)
    assert search.guilty is None


@given(st.integers(2, 64), st.randoms(use_true_random=False))
def test_whatever_happens_it_ends_and_blames_only_who_was_tried_alone(count, chance):
    """Also where workers die for other reasons on the way."""
    search, alone = Search(range(count)), []

    def kills(probe):
        died = chance.random() < 0.5
        if died and len(probe) == 1:
            alone.append(probe[0])
        return died

    tries, _ = run(search, kills)
    assert search.guilty is None or search.guilty == alone[-1]
    assert tries <= count + 1
