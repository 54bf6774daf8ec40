"""Headspace: what a perfect loader would save."""

from __future__ import annotations

import time

import pytest

import stoker
from stoker import Headspace, Loader, Threads
from tests.observe.slowness import Sleeping


def test_a_slow_loader_leaves_much_to_save_and_a_quick_one_little():
    with Loader(Sleeping(100, 0.02), 4) as loader:
        slow = stoker.headspace(loader, lambda batch: time.sleep(0.02), batches=10)
    with Loader(Sleeping(100), 4, workers=Threads(2)) as loader:
        quick = stoker.headspace(loader, lambda batch: time.sleep(0.05), batches=10)
    assert (slow.batches, quick.batches) == (10, 10)
    assert quick.saved < 0.4 < 0.6 < slow.saved
    assert "would save" in slow.sentence == str(slow)


def test_it_takes_what_it_measures_and_five_more_and_nothing_else():
    seen = []
    with Loader(range(100), 1) as loader:
        stoker.headspace(loader, lambda batch: seen.append(int(batch[0])), batches=10)
        state = loader.state_dict()
    with Loader(range(100), 1) as loader:
        loader.load_state_dict(state)
        assert int(next(iter(loader))[0]) == 15
    assert seen == [*range(15), *(11 + number % 4 for number in range(10))]


@pytest.mark.parametrize(("batches", "measured"), [(1, 1), (3, 2), (5, 4), (6, 1), (8, 3)])
def test_of_a_loader_that_is_too_short_what_there_is_is_measured(batches, measured):
    steps = []
    found = stoker.headspace([0] * batches, steps.append, batches=50)
    assert (found.batches, len(steps)) == (measured, batches + measured)


def test_a_loader_without_batches_is_an_error():
    with pytest.raises(ValueError, match="given no batch"):
        stoker.headspace([], print)
    with pytest.raises(ValueError, match="batches=0"):
        stoker.headspace([1], print, batches=0)


def test_an_error_of_the_step_is_raised_and_the_loader_goes_on():
    def step(batch):
        if batch[0] == 7:
            raise RuntimeError("of the step")

    with Loader(range(20), 1, workers=Threads(2)) as loader:
        with pytest.raises(RuntimeError, match="of the step"):
            stoker.headspace(loader, step)
        assert [int(batch[0]) for batch in loader] == list(range(20))  # the next epoch, as after a break


@pytest.mark.parametrize(
    ("loaded", "perfect", "saved", "words"),
    [
        (0.115, 0.1, 0.13, "A perfect loader would save 13 %: a batch takes 115 ms with this one, and 100 ms"),
        (0.1, 0.1, 0.0, "A perfect loader would save nothing"),
        (0.1, 0.12, 0.0, "A perfect loader would save nothing"),
        (0.0, 0.0, 0.0, "A perfect loader would save nothing"),
    ],
)
def test_the_sentence(loaded, perfect, saved, words):
    found = Headspace(10, loaded, perfect)
    assert found.saved == pytest.approx(saved, abs=0.005)
    assert found.sentence.startswith(words)
