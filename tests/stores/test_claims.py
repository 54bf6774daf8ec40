"""Claims: one worker makes a sample and others wait; whoever dies, errs or is given up leaves nothing claimed."""

from __future__ import annotations

import contextlib
import math
import threading

import numpy as np
import pytest

from stoker.stores.cache_file import CacheFile
from stoker.stores.cache_folder import holding
from stoker.stores.claims import Abandoned
from stoker.stores.record_codec import RecordDecoder, RecordEncoder
from stoker.stores.shared_samples import collect
from tests.stores.caching import verified

N = 8


@pytest.fixture
def opened(path):
    """Opens the generation anew at each call, as each worker does."""
    path.mkdir()
    (path / "lock").touch()
    with contextlib.ExitStack() as stack:

        def open_it() -> CacheFile:
            with holding(str(path)):
                made = CacheFile(
                    str(path / "all.samples"),
                    N,
                    RecordEncoder("safe"),
                    RecordDecoder("safe", copies=False),
                    lambda: contextlib.nullcontext(math.inf),
                    math.inf,
                    told.append,
                )
            stack.callback(made.close)
            return made

        told = open_it.told = []
        yield open_it


def fill(generation, keys, made=None):
    """The samples, made where they are missing."""

    def make(key):
        if made is not None:
            made.append(key)
        return np.full(3, key)

    return collect(generation, keys, make, lambda: None).samples


def test_what_one_has_claimed_another_does_not_get(opened):
    one, other = opened(), opened()
    with one.claiming([1, 2]) as (mine, waits_for):
        assert (mine, waits_for) == ([1, 2], None)
        with other.claiming([2, 3]) as (rest, owner):
            assert rest == [3]
            assert owner is not None
            with opened().claiming([1, 2, 3]) as (nothing, one_of_them):
                assert nothing == []
                assert one_of_them is not None


def test_what_was_claimed_and_not_put_is_free_again(opened):
    one, other = opened(), opened()
    with one.claiming([1, 2]):
        one.put(1, np.arange(3))
    with other.claiming([1, 2]) as (mine, waits_for):
        assert (mine, waits_for) == ([2], None)
    assert_equal(other.look([1, 2]), {1: np.arange(3)})


def test_an_error_gives_all_claims_back(opened):
    one, other = opened(), opened()
    with pytest.raises(LookupError), one.claiming([1, 2]):
        raise LookupError
    with other.claiming([1, 2]) as (mine, _):
        assert mine == [1, 2]


def test_who_is_closed_has_no_claims(opened):
    one, other = opened(), opened()
    claims = one.claiming([1, 2])
    claims.__enter__()
    one.close()
    with other.claiming([1, 2]) as (mine, waits_for):
        assert (mine, waits_for) == ([1, 2], None)
    with contextlib.suppress(OSError):
        claims.__exit__(None, None, None)


def test_who_waits_goes_on_when_the_other_is_done(opened):
    one, other = opened(), opened()
    begun, made = threading.Event(), []

    def work():
        with one.claiming([1]):
            begun.set()
            one.put(1, np.arange(3))

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait()
    assert_equal(fill(other, [1], made), {1: np.arange(3)})
    thread.join()
    assert made == []


def test_two_who_need_the_same_in_another_order_do_not_lock_each_other_out(opened):
    made = []

    def work(generation, keys):
        for _ in range(20):
            fill(generation, keys, made)

    threads = [
        threading.Thread(target=work, args=(opened(), keys)) for keys in ([0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2])
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made) == [0, 1, 2, 3]


def test_one_key_may_be_asked_for_several_times_at_once(opened):
    made = []
    assert sorted(fill(opened(), [5, 5, 1, 5], made)) == [1, 5]
    assert sorted(made) == [1, 5]


def test_what_was_given_up_is_free_at_once_and_what_it_still_puts_counts_for_nothing(opened, path):
    abandoned, other = opened(), opened()
    claims = abandoned.claiming([1, 2])
    claims.__enter__()
    abandoned.put(1, np.full(3, 77))
    abandoned.abandon()
    assert_equal(fill(other, [1, 2]), {1: np.full(3, 1), 2: np.full(3, 2)})
    abandoned.put(2, np.full(3, 77))
    claims.__exit__(None, None, None)
    for one in (abandoned, other, opened()):
        assert_equal(one.look([1, 2]), {1: np.full(3, 1), 2: np.full(3, 2)})
    (found,) = verified(path)
    assert (found.sound, found.damaged) == (2, [])


def test_who_was_given_up_claims_nothing_more(opened):
    """If it hung once more, nobody would end it, and others would wait for ever."""
    abandoned, other = opened(), opened()
    abandoned.abandon()
    with pytest.raises(Abandoned), abandoned.claiming([1]):
        raise AssertionError("it has claimed")
    with other.claiming([1]) as (mine, waits_for):
        assert (mine, waits_for) == ([1], None)


def test_who_was_closed_may_be_given_up(opened):
    generation = opened()
    generation.close()
    generation.abandon()
    generation.close()


def test_samples_of_several_megabytes_and_of_none(opened):
    """Small ones are written together, big ones by themselves."""
    sizes = [0, 1, 2**20, 2**22 + 1, 3, 2**23 - 7, 0, 5]
    samples = {key: np.arange(size, dtype=np.uint8) for key, size in enumerate(sizes)}
    one, other = opened(), opened()
    collect(one, range(N), samples.__getitem__, lambda: None)
    for generation in (one, other, opened()):
        assert_equal(generation.look(range(N)), samples)


def assert_equal(got, expected):
    assert {key: value.tolist() for key, value in got.items()} == {
        key: value.tolist() for key, value in expected.items()
    }
