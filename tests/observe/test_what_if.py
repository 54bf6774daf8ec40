"""What a change would bring, held against what it brings."""

from __future__ import annotations

import time

import pytest

import stoker
from stoker import Loader
from stoker.observe.evidence import Evidence
from tests.observe.slowness import Sleeping

WITHIN = 0.15  # of the time

# Seconds a sample, one slow one in so many and its seconds, step, how it is, and what is changed.
CHANGES = {
    "a second worker": ((0.01, 0, 0.0), 0.03, {"workers": 1}, {"workers": 2}),
    "twice the workers": ((0.02, 0, 0.0), 0.02, {"workers": 2}, {"workers": 4}),
    "workers that are not enough": ((0.02, 0, 0.0), 0.005, {"workers": 2}, {"workers": 3}),
    "one worker less": ((0.01, 0, 0.0), 0.02, {"workers": 3}, {"workers": 1}),
    "any order": ((0.0005, 50, 0.3), 0.01, {"workers": 3}, {"in_order": False}),
    "more ahead": ((0.0005, 50, 0.3), 0.01, {"workers": 3}, {"prefetch": 8}),
}
FEW = "a second worker"


def evidence_of(dataset, step, **arguments) -> Evidence:
    with Loader(dataset, 4, **arguments) as loader:
        loader.warm_up()
        for _ in loader:
            time.sleep(step)
    return Evidence(loader.stats())


@pytest.mark.parametrize(
    "change", [name if name == FEW else pytest.param(name, marks=pytest.mark.exhaustive) for name in CHANGES]
)
def test_what_is_foretold_comes_about(change):
    (seconds, every, longer), step, now, then = CHANGES[change]
    dataset = Sleeping(400, seconds, every=every, longer=longer)
    before, after = evidence_of(dataset, step, **now), evidence_of(dataset, step, **{**now, **then})
    foretold = before.forecast.what_if(**then)
    assert foretold == pytest.approx(after.wait, abs=WITHIN), f"{before.wait:.0%} -> {after.wait:.0%}"


def test_the_figure_in_the_sentence_is_that_of_the_model():
    before = evidence_of(Sleeping(160, 0.01), 0.03, workers=stoker.Threads(1))
    [what] = stoker.diagnose(before.stats).what_if
    assert (what.change, what.wait) == ("workers=stoker.Threads(2)", before.forecast.what_if(workers=2))
