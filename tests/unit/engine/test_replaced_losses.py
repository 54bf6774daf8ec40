"""Where samples are replaced, an entry finds the sample of each place that kills, and the next one, and so on."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from stoker.engine.entry import Entry
from stoker.plan import Run
from stoker.workers import Death

ALLOWED = 3  # replacements


@settings(deadline=None)
@given(st.lists(st.integers(0, ALLOWED + 1), min_size=1, max_size=9), st.integers(1, 3))
def test_each_place_loses_as_many_as_kill_there_or_the_batch_is_given_up(killers: list[int], deaths_allowed: int):
    """``killers``: how many of the chain of each place kill, one after the other."""
    samples = len(killers)
    entry = Entry(Run(0, 0, samples), 0, ALLOWED)
    for _ in range(2000):
        left_out = entry.left_out(samples) if entry.search or entry.losses else ()
        lost = Counter(~place for place in left_out if place < 0)
        made = [place for place in range(samples) if place not in left_out]
        if any(killers[place] > lost[place] for place in made):
            entry.blame(Death(0, "SIGKILL (-9)"), deaths_allowed, samples)
            if entry.given_up is not None:
                break
        elif entry.search is not None:
            entry.probe_made()
        else:
            assert made == list(range(samples)), "no place stays empty"
            assert lost == Counter(loss.place for loss in entry.losses)
            break
    found = Counter(loss.place for loss in entry.losses)
    assert (entry.given_up is not None) == any(count > ALLOWED for count in killers)
    if entry.given_up is None:
        assert found == Counter({place: count for place, count in enumerate(killers) if count})
