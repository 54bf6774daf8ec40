"""A stream goes on where its state was saved: at every position, on any backend, in order or not."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import stoker
from stoker import ClosedError, Inline, Processes, StateError, Threads
from tests.items import works

N = 12


def wanted(count: int = N) -> list:
    with stoker.stream(works.dice, range(count)) as results:
        return list(results)


def saved_after(taken: int, **arguments):
    """The results that were taken, and the state, through JSON."""
    with stoker.stream(works.dice, range(N), **arguments) as results:
        got = list(itertools.islice(results, taken))
        return got, json.loads(json.dumps(results.state_dict()))


@pytest.mark.parametrize("make", [range, lambda n: iter(range(n))], ids=["a range", "an iterator"])
@pytest.mark.parametrize("workers", [Inline(), Threads(3), Processes(2)], ids=repr)
def test_in_order_at_every_position(workers, make):
    for taken in range(N + 1):
        got, state = saved_after(taken, workers=workers)
        with stoker.stream(works.dice, make(N), workers=workers) as results:
            results.load_state_dict(state)
            assert got + list(results) == wanted()


@pytest.mark.parametrize("workers", [Threads(3), Processes(2)], ids=repr)
def test_out_of_order_at_every_position(workers):
    for taken in range(N + 1):
        got, state = saved_after(taken, workers=workers, in_order=False)
        with stoker.stream(works.dice, iter(range(N)), workers=workers, in_order=False) as results:
            results.load_state_dict(state)
            assert sorted(got + list(results)) == wanted()


def test_another_backend_may_go_on(backend):
    got, state = saved_after(5, workers=2)
    with stoker.stream(works.dice, range(N), workers=backend, prefetch=1) as results:
        results.load_state_dict(state)
        assert got + list(results) == wanted()


def test_a_state_of_out_of_order_may_go_on_in_order():
    got, state = saved_after(6, workers=Threads(4), in_order=False)
    with stoker.stream(works.dice, range(N)) as results:
        results.load_state_dict(state)
        rest = list(results)
    assert rest == sorted(rest)
    assert sorted(got + rest) == wanted()


@given(
    jumps=st.lists(st.tuples(st.integers(0, N), st.integers(0, 5)), max_size=5),
    workers=st.sampled_from([Inline(), Threads(2)]),
)
def test_back_and_forth_where_items_can_be_had_again(jumps, workers):
    states = [saved_after(position)[1] for position in range(N + 1)]
    with stoker.stream(works.dice, list(range(N)), workers=workers) as results:
        for position, takes in jumps:
            results.load_state_dict(states[position])
            takes = min(takes, N - position)
            assert list(itertools.islice(results, takes)) == wanted()[position : position + takes]


def test_what_was_prefetched_need_not_be_had_again(backend):
    """Going on from where the consumer is needs no item twice, also of an iterator that gives each once."""
    with stoker.stream(works.dice, iter(range(N)), workers=backend) as results:
        got = list(itertools.islice(results, 5))
        results.load_state_dict(results.state_dict())
        assert got + list(results) == wanted()


class SameAgain:
    """Its ``__iter__`` does not begin anew."""

    def __init__(self) -> None:
        self.iterator = iter(range(N))

    def __iter__(self):
        return self.iterator


@pytest.mark.parametrize("make", [lambda: iter(range(N)), SameAgain, lambda: map(int, range(N))])
def test_an_iterator_that_gives_each_once_cannot_go_back(backend, make):
    _, state = saved_after(2)
    with stoker.stream(works.dice, make(), workers=backend) as results:
        assert list(itertools.islice(results, 5)) == wanted()[:5]
        results.load_state_dict(state)
        with pytest.raises(StateError, match=r"item 2 is to come next, but \d+ were pulled already"):
            next(results)


def test_an_error_of_items_that_begin_anew_is_not_raised_again():
    class FailingOnce:
        failed = False

        def __iter__(self):
            yield from range(3)
            if not self.failed:
                self.failed = True
                raise KeyError("once")

    _, state = saved_after(0)
    items = FailingOnce()
    with stoker.stream(works.number, items, workers=Threads(4), prefetch=4) as results:
        assert next(results) == 0
        assert items.failed or next(results) == 1  # if the first was slow to come; ahead of the consumer, anyway
        assert items.failed
        results.load_state_dict(state)
        assert list(results) == [0, 1, 2]


def test_after_an_error_a_state_leads_to_the_same_item_again(backend):
    with stoker.stream(works.failing, iter(range(8)), workers=backend) as results:
        assert list(itertools.islice(results, 3)) == [0, 1, 2]
        with pytest.raises(KeyError):
            next(results)
        state = results.state_dict()
        results.load_state_dict(state)
        with pytest.raises(KeyError):
            next(results)
        assert list(results) == [4, 5, 6, 7]
    with stoker.stream(works.number, range(8), workers=backend) as mended:
        mended.load_state_dict(state)
        assert list(mended) == [3, 4, 5, 6, 7]


def test_what_was_left_out_counts_as_taken_and_against_max_errors():
    arguments = {"on_error": "skip", "max_errors": 2}
    with stoker.stream(works.failing, range(30), **arguments) as results:
        assert list(itertools.islice(results, 13)) == [n for n in range(15) if n % 10 != 3]
        state = results.state_dict()
    with stoker.stream(works.failing, range(30), **arguments) as results:
        results.load_state_dict(state)
        assert list(itertools.islice(results, 8)) == [15, 16, 17, 18, 19, 20, 21, 22]
        with pytest.raises(stoker.TooManyErrors):
            next(results)


def test_fewer_items_than_the_state_has_taken_are_none():
    _, state = saved_after(8)
    with stoker.stream(works.dice, range(5)) as results:
        results.load_state_dict(state)
        assert list(results) == []


def test_a_state_of_another_seed_or_none_at_all():
    _, state = saved_after(3, seed=1)
    with stoker.stream(works.dice, range(N)) as results:
        with pytest.raises(StateError, match="seed"):
            results.load_state_dict(state)
        with pytest.raises(StateError, match="damaged"):
            results.load_state_dict({**state, "position": 4})
        assert list(results) == wanted()


def test_after_its_end_a_stream_can_tell_its_state_but_not_go_back():
    with stoker.stream(works.dice, range(N), workers=1) as results:
        list(results)
        state = results.state_dict()
        with pytest.raises(ClosedError):
            results.load_state_dict(state)
    with stoker.stream(works.dice, range(N + 3)) as longer:
        longer.load_state_dict(state)
        assert list(longer) == wanted(N + 3)[N:]


@pytest.mark.parametrize("workers", [Threads(2), Processes(2)], ids=repr)
def test_what_was_moved_ahead_to_a_device_need_not_be_had_again(workers):
    arguments = {"workers": workers, "to_device": lambda result: result, "max_on_device": 3}
    with stoker.stream(works.dice, iter(range(N)), **arguments) as results:
        got = list(itertools.islice(results, 3))
        results.load_state_dict(results.state_dict())
        got += list(itertools.islice(results, 4))
        results.load_state_dict(results.state_dict())
        assert got + list(results) == wanted()
