"""``indices`` tells what was in a batch; after ``seek`` and ``skip``, what follows is the same stream."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stoker
from stoker import Inline, Loader, Processes, Rotation, Threads
from tests.datasets import Rows

LENGTH, EPOCHS = 23, 3


def loader(**options: Any) -> Loader:
    options = {"batch_size": 3, "shuffle": True, "seed": 5, "workers": Inline()} | options
    return Loader(options.pop("data", np.arange(LENGTH)), **options)


def epoch_of(loader: Loader) -> list[list[int]]:
    return [np.atleast_1d(batch).tolist() for batch in loader]


def stream(**options: Any) -> list[tuple[int, int, list[int]]]:
    """(epoch, step, batch) of some epochs, undisturbed."""
    with loader(**options) as undisturbed:
        return [(epoch, step, b) for epoch in range(EPOCHS) for step, b in enumerate(epoch_of(undisturbed))]


SETTINGS = [
    {},
    {"batch_size": None},
    {"shuffle": 4, "drop_last": True},
    {"shard": (1, 3)},
    {"shard": (2, 3), "even_shards": False, "batch_size": 2},
    {"rotation": Rotation(2, size=5)},
    {"rotation": Rotation(3), "shard": (0, 2)},
]


@pytest.mark.parametrize("options", SETTINGS, ids=str)
def test_indices_are_those_of_the_batch_before_during_and_after_a_loop(options):
    expected = stream(**options)
    with loader(**options) as one:
        assert [one.indices(epoch, step) for epoch, step, _ in expected] == [batch for *_, batch in expected]
        assert one.stats().batches == 0
        for epoch, step, batch in expected[: len(one)]:
            assert one.indices(epoch, step) == batch
        iterator = iter(one)
        next(iterator)
        assert [one.indices(epoch, step) for epoch, step, _ in expected] == [batch for *_, batch in expected]
        next(iterator)
    assert one.indices(0, 1) == expected[1][2], "also when it was closed"
    assert all(type(index) is int for index in one.indices(0, 1))


@pytest.mark.parametrize("options", SETTINGS, ids=str)
def test_after_seek_the_stream_goes_on_from_there(options):
    expected = stream(**options)
    for place, (epoch, step, _) in enumerate(expected):
        with loader(**options) as one:
            one.seek(epoch, step)
            assert one.epoch == epoch
            rest = [batch for _ in range(epoch, EPOCHS) for batch in epoch_of(one)]
        assert rest == [batch for *_, batch in expected[place:]]


def test_seek_is_like_loading_a_state_that_was_saved_there():
    with loader() as saved, loader() as sought:
        for step, _ in enumerate(saved, 1):
            if step == len(saved):
                break
            sought.seek(0, step)
            assert sought.state_dict() == saved.state_dict()
        sought.seek(1)
        assert sought.state_dict() == saved.state_dict()


@pytest.mark.parametrize("options", SETTINGS, ids=str)
@pytest.mark.parametrize("count", [0, 1, 2, 7, 8, 20])
def test_in_a_loop_skip_passes_over_the_next_batches_and_the_loop_goes_on(options, count):
    expected = [batch for *_, batch in stream(**options)]
    with loader(**options) as one:
        seen = []
        while one.epoch < EPOCHS:
            for batch in one:
                seen.append(np.atleast_1d(batch).tolist())
                if len(seen) == 2:
                    one.skip(count)
    assert seen == expected[:2] + expected[2 + count :]


def test_a_loop_ends_if_it_is_moved_to_another_epoch_and_the_next_one_begins_there():
    expected = {(epoch, step): batch for epoch, step, batch in stream()}
    with loader() as one:
        iterator = iter(one)
        next(iterator)
        one.seek(2, 5)
        assert list(iterator) == []
        assert one.epoch == 2
        assert epoch_of(one) == [expected[2, step] for step in range(5, 8)]
        assert one.epoch == 3


def test_a_loop_that_is_moved_away_and_back_goes_on():
    expected = {(epoch, step): batch for epoch, step, batch in stream()}
    with loader() as one:
        iterator = iter(one)
        next(iterator)
        one.seek(2, 5)
        one.seek(0, 6)
        assert [batch.tolist() for batch in iterator] == [expected[0, 6], expected[0, 7]]
        assert epoch_of(one)[0] == expected[1, 0]


def test_after_a_break_the_next_loop_begins_where_the_loader_was_moved_to():
    expected = {(epoch, step): batch for epoch, step, batch in stream()}
    for move in (lambda one: one.seek(0, 4), lambda one: one.skip(3)):
        with loader() as one:
            for _ in one:
                move(one)
                break
            assert epoch_of(one) == [expected[0, step] for step in range(4, 8)]
            assert one.epoch == 1
    with loader() as one:
        for _ in one:
            break
        one.skip(3)
        assert epoch_of(one)[0] == expected[0, 4], "it counts from where state_dict() is"


def test_an_epoch_that_is_passed_over_to_its_end_is_no_empty_loop():
    expected = {(epoch, step): batch for epoch, step, batch in stream()}
    with loader() as one:
        one.skip(len(one))
        assert one.epoch == 1
        assert epoch_of(one)[0] == expected[1, 0]
    with loader() as one:
        iterator = iter(one)
        list(itertools.islice(iterator, len(one)))
        one.skip(0)  # when the last batch was taken, and the loop has not noticed
        assert next(iterator, None) is None
        assert epoch_of(one)[0] == expected[1, 0]


def test_it_works_after_a_resume_and_is_part_of_the_state():
    expected = [batch for *_, batch in stream()]
    with loader() as one:
        next(iter(one))
        one.skip(3)
        state = one.state_dict()
    with loader() as other:
        other.load_state_dict(state)
        other.skip(1)
        assert epoch_of(other) == expected[5:8]


def test_skipping_after_an_error_passes_over_the_batch_that_failed():
    class Broken(Rows):
        def __getitem__(self, index):
            if index == 4:
                raise OSError("broken")
            return index

    with Loader(Broken(12), 2, workers=Inline()) as one:
        iterator = iter(one)
        next(iterator), next(iterator)
        with pytest.raises(OSError, match="broken"):
            next(iterator)
        one.skip(1)
        assert [batch.tolist() for batch in iterator] == [[6, 7], [8, 9], [10, 11]]


moves = st.one_of(
    st.tuples(st.just("take"), st.integers(1, 5)),
    st.tuples(st.just("skip"), st.integers(0, 12)),
    st.tuples(st.just("seek"), st.integers(0, 4 * 8 - 1)),
    st.tuples(st.just("resume"), st.just(0)),
)


@given(st.lists(moves, max_size=12))
def test_whatever_moves_there_are_the_next_batch_is_the_one_that_a_naive_model_says(script):
    steps = 8  # of an epoch
    one, place = loader(), 0
    try:
        iterator = iter(one)
        for what, number in script:
            if what == "skip":
                one.skip(number)
                place += number
            elif what == "seek":
                one.seek(*divmod(number, steps))
                place = number
            elif what == "resume":
                state, one = one.state_dict(), (one.close(), loader())[1]
                one.load_state_dict(state)
                iterator = iter(one)
            for _ in range(number if what == "take" else 0):
                batch = next(iterator, None)
                if batch is None:
                    iterator = iter(one)
                    batch = next(iterator)
                assert batch.tolist() == one.indices(*divmod(place, steps))
                place += 1
    finally:
        one.close()


def test_out_of_order_it_goes_by_the_order_of_the_plan_and_nothing_comes_twice():
    with loader(workers=Threads(3), in_order=False, data=np.arange(60), batch_size=2) as one:
        iterator = iter(one)
        taken = [next(iterator).tolist() for _ in range(4)]
        one.skip(10)
        rest = [batch.tolist() for batch in iterator]
        everything = [one.indices(0, step) for step in range(30)]
    passed = [batch for batch in everything if batch not in taken][:10]
    assert sorted(taken + passed + rest) == sorted(everything)


@pytest.mark.parametrize("workers", [Threads(2), Processes(2)], ids=str)
def test_what_was_prefetched_does_not_come(workers):
    expected = {(epoch, step): batch for epoch, step, batch in stream()}
    with loader(workers=workers, data=functools.partial(np.arange, LENGTH)) as one:
        assert one.indices(1, 2) == expected[1, 2], "only a worker knows the length"
        assert len(one) == 8
        seen = []
        for batch in one:
            seen.append(batch.tolist())
            if len(seen) == 2:
                one.skip(3)
            if len(seen) == 4:
                one.seek(0, 1)
            if len(seen) == 6:
                break
        assert seen == [expected[0, step] for step in (0, 1, 5, 6, 1, 2)]


def test_a_rotation_goes_on_in_worker_processes():
    options = {"rotation": Rotation(2, size=6)}
    expected = [batch for *_, batch in stream(**options)]
    with loader(**options, workers=2) as one:
        seen = []
        for batch in itertools.chain(one, one):
            seen.append(batch.tolist())
            if len(seen) == 3:
                one.skip(5)
            if len(seen) == 6:
                one.seek(1, 0)
    assert seen[:6] == expected[:3] + expected[8:11]
    steps = len(expected) // EPOCHS
    assert seen[6:] == expected[steps : 2 * steps]


@pytest.mark.parametrize("step", [-1, 8, 10**9])
def test_a_step_that_does_not_exist_is_an_error_and_nothing_moves(step):
    with loader() as one:
        next(iter(one))
        before = one.state_dict()
        for call in (one.seek, one.indices):
            with pytest.raises((IndexError, ValueError), match=str(step)):
                call(0, step)
        assert one.state_dict() == before
    with pytest.raises(IndexError, match=r"no step 8: it has 8 batches \(of shard \(0, 1\)\), so its steps are 0 to 7"):
        one.indices(0, 8)


@pytest.mark.parametrize("wrong", [-1, 1.0, True, "1", None, 2**60])
def test_a_number_that_is_none_is_said_so(wrong):
    with loader() as one:
        for call in (
            lambda: one.seek(wrong, 0),
            lambda: one.seek(0, wrong),
            lambda: one.skip(wrong),
            lambda: one.indices(wrong, 0),
            lambda: one.indices(0, wrong),
        ):
            with pytest.raises(ValueError, match="pass a whole number from 0 to"):
                call()


def test_what_has_no_batches_says_so():
    with loader(data=[]) as empty:
        with pytest.raises(ValueError, match="no batches"):
            empty.skip(1)
        with pytest.raises(IndexError, match="its steps are none"):
            empty.indices(0, 0)


def test_chunks_refuse_and_say_what_to_do(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(6))
    with Loader(stoker.Chunks(str(tmp_path / "*.npy")), 2) as one:
        for call in (lambda: one.seek(0, 1), lambda: one.skip(1), lambda: one.indices(0, 0)):
            with pytest.raises(ValueError, match=r"a loader of Chunks: .*set_epoch"):
                call()


def test_a_closed_loader_does_not_move():
    one = loader()
    one.close()
    for call in (lambda: one.seek(0, 1), lambda: one.skip(1)):
        with pytest.raises(stoker.ClosedError):
            call()


def test_a_dataset_that_has_grown_is_counted_anew():
    data = list(range(6))
    with Loader(data, 2, workers=Inline()) as one:
        assert len(epoch_of(one)) == 3
        data += [6, 7]
        assert one.indices(1, 3) == [6, 7]
        one.seek(1, 2)
        assert epoch_of(one) == [[4, 5], [6, 7]]


def test_skip_names_the_epoch_of_an_order_of_ones_own_that_has_no_batches():
    """Later epochs may have some, so it is not the dataset that is too short."""
    with Loader(range(9), 4, drop_last=True, order=lambda epoch: range(3 + epoch)) as loader:
        with pytest.raises(ValueError, match=r"skip\(1\): epoch 0 has no batches"):
            loader.skip(1)
        loader.set_epoch(1)
        assert len(list(loader)) == 1
