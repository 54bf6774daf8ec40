"""``assert_resumable`` passes loaders that go on where they were, and fails on each way not to."""

from __future__ import annotations

import pytest

from stoker import Inline, Loader, Processes, Threads
from stoker.testing import assert_resumable
from tests.datasets import Augmented, Rows
from tests.testing.fakes import Counting, Fake, Scattered


def loader(workers=0, **options):
    return Loader(Augmented(22), 5, workers=workers, shuffle=True, seed=9, **options)


def test_a_good_loader_passes_at_every_step_on_every_backend(backend):
    assert_resumable(lambda: loader(backend), steps=5)


@pytest.mark.parametrize("shuffle", [False, True, 6])
def test_a_good_loader_passes_at_every_step(shuffle):
    assert_resumable(lambda: Loader(Augmented(22), 5, shuffle=shuffle), epochs=3)


def test_another_backend_may_go_on():
    assert_resumable(loader, resume_with=lambda: loader(Threads(3), prefetch=4))
    assert_resumable(lambda: loader(Processes(2)), resume_with=lambda: loader(Inline()), steps=4)


@pytest.mark.parametrize("workers", [Threads(4), Processes(2)], ids=repr)
def test_out_of_order_the_rest_is_what_was_not_taken(workers):
    assert_resumable(lambda: loader(workers, in_order=False), in_order=False, steps=6)


def test_the_fakes_are_right_where_they_should_be():
    assert_resumable(Fake)
    assert_resumable(lambda: Fake(batches=1))
    assert_resumable(Scattered, in_order=False)


WRONG = {
    "loses what was prefetched": r"state before the first batch: .*batch 0: .* It is batch 2 of this epoch: those",
    "repeats": r"first batch, and after 2 more batches a second time: epoch 0, batch 2: .* It is batch 1 .* once more",
    "forgets the epoch": r"state after batch 4 of epoch 0, and .* epoch 1, batch 2: batch\['x'\]\[0\] is 0, not 1",
    "order after a resume": r"state before the first batch: epoch 0, batch 0: .* It is batch 4",
    "the same epoch after a resume": r"epoch 1, batch 0: batch\['x'\]\[0\] is 0, not 1",
    "counts from the resume": r"state before the first batch, and after 2 more batches a second time: .*batch 2",
    "saving moves it": r"a run whose state is saved at each step.*epoch 0, batch 2",
    "the end is the end": r"state after batch 4 of epoch 0: epoch 1 ended with 5 of 5 batches lost",
    "no JSON": r"the state before the first batch cannot be written as JSON",
    "noise": r"epoch 1, batch 3",
}


@pytest.mark.parametrize("wrong", WRONG)
def test_each_way_to_be_wrong_is_found(wrong):
    with pytest.raises(AssertionError, match=WRONG[wrong]):
        assert_resumable(lambda: Fake(wrong))


@pytest.mark.parametrize(
    ("wrong", "words"), [("loses", "none of the .* still due|ended with"), ("repeats", "delivered before")]
)
def test_each_way_to_be_wrong_out_of_order_is_found(wrong, words):
    with pytest.raises(AssertionError, match=words):
        assert_resumable(lambda: Scattered(wrong, batches=20), in_order=False)


def test_what_comes_out_of_order_is_wrong_unless_said():
    with pytest.raises(AssertionError, match="epoch 0, batch"):
        assert_resumable(lambda: Scattered(batches=50))


def test_a_state_that_json_changes_is_told_with_the_loaders_own_error():
    with pytest.raises(KeyError) as caught:
        assert_resumable(lambda: Fake("number keys"))
    assert "the state before the first batch" in "".join(caught.value.__notes__)


def test_a_dataset_with_hidden_state_is_found():
    with pytest.raises(AssertionError, match="epoch 0, batch"):
        assert_resumable(lambda: Loader(Counting(22), 5))


def test_the_states_of_another_plan_are_refused():
    with pytest.raises(ValueError, match="seed"):
        assert_resumable(loader, resume_with=lambda: Loader(Augmented(22), 5, shuffle=True))


def test_steps_limits_the_loaders_that_are_made():
    made = []

    def make():
        made.append(Loader(Rows(50), 5))
        return made[-1]

    assert_resumable(make, steps=3)
    assert len(made) == 2 + 3 * 2
    with pytest.raises(AssertionError, match="state after the end of epoch 1"):
        assert_resumable(lambda: Fake("forgets the epoch"), steps=2)  # the first and the last


def test_mistakes_of_the_caller_are_told():
    with pytest.raises(TypeError, match="gave a list, which has no state_dict"):
        assert_resumable(lambda: [1, 2])
    with loader() as used:
        with pytest.raises(TypeError, match="make_loader is"):
            assert_resumable(used)
        with pytest.raises(ValueError, match="the same loader twice"):
            assert_resumable(lambda: used)
    with loader() as used, pytest.raises(ValueError, match=r"resume_with\(\) gave the same loader twice"):
        assert_resumable(loader, resume_with=lambda: used)
    with pytest.raises(ValueError, match="steps=0"):
        assert_resumable(loader, steps=0)
    with pytest.raises(ValueError, match="epochs are empty"):
        assert_resumable(lambda: Loader([], 5))
