"""What ``to`` or ``to_device`` raises, or what interrupts it: no batch is lost over it, from wherever it is."""

from __future__ import annotations

import contextlib
import itertools
from collections import Counter

import pytest

from stoker import Chunks, Loader, Threads
from tests.chunks.files import flat, load, numbers, write_chunks

SIZES = [3, 5, 2, 6, 0, 9]  # with batches of 4: some full, some joined of several files, and a short one at the end

CASES = {
    "in order": {},
    "shuffled": {"shuffle": True},
    "the last dropped": {"drop_last": True},
    "each file by itself": {"across_chunks": False},
    "as they come": {"in_order": False, "shuffle": True, "workers": Threads(2)},
    "a shard": {"shard": (1, 2)},
    "single samples": {"batch_size": None},
}


class Timeout(BaseException):
    """What a signal's handler may raise."""


class FailingOnce:
    """Gives the numbers of a batch; raises the error with the nth batch, after it has written into that."""

    def __init__(self, nth: int, error: type[BaseException]) -> None:
        self.left, self.error = nth, error

    def __call__(self, batch):
        got = numbers_of(batch)
        self.left -= 1
        if self.left == -1:
            if hasattr(batch["number"], "fill"):
                batch["number"].fill(-1)  # the next try must not see this
            raise self.error("no")
        return got


def numbers_of(batch):
    return numbers(batch) if hasattr(batch["number"], "tolist") else [batch["number"]]


def make(folder, options, **more):
    options = {"batch_size": 4} | options
    chunks = Chunks(folder, interleave=1, across_chunks=options.pop("across_chunks", True))
    return Loader(chunks, options.pop("batch_size"), **options, **more)


@pytest.fixture
def folder(tmp_path):
    write_chunks(tmp_path / "data", SIZES)
    return tmp_path / "data"


def taken(loader) -> tuple[list[list[int]], list[dict]]:
    """All batches of an epoch, going on after errors, and the states right after those."""
    got, states, iterator = [], [], iter(loader)
    while True:
        try:
            got.append(next(iterator))
        except StopIteration:
            return got, states
        except (ValueError, RuntimeError, KeyboardInterrupt, Timeout):
            states.append(loader.state_dict())


@pytest.mark.parametrize("option", ["to", "to_device"])
@pytest.mark.parametrize("case", CASES)
def test_an_interrupt_loses_nothing_and_a_state_saved_then_neither(folder, case, option):
    with make(folder, CASES[case], to=numbers_of) as loader:
        whole = list(loader)
    for nth in range(len(whole)):
        for error in (KeyboardInterrupt, Timeout):
            with make(folder, CASES[case], **{option: FailingOnce(nth, error)}) as loader:
                got, states = taken(loader)
            with make(folder, CASES[case], to=numbers_of) as loader:
                loader.load_state_dict(states[0])
                rest = list(loader)
            if case == "as they come":
                assert Counter(flat(got)) == Counter(flat(whole))
                assert len(flat(rest)) == len(flat(whole)) - 4 * nth
            else:
                assert (got, rest) == (whole, whole[nth:])


@pytest.mark.parametrize("error", [ValueError, StopIteration])
@pytest.mark.parametrize("case", CASES)
def test_after_an_error_going_on_passes_the_batch_over_and_a_state_leads_to_it(folder, case, error):
    """As with a dataset that has an index."""
    with make(folder, CASES[case], to=numbers_of) as loader:
        whole = list(loader)
    for nth in range(len(whole)):
        with make(folder, CASES[case], to=FailingOnce(nth, error)) as loader:
            got, states = taken(loader)
            assert loader.stats().batches == len(whole) - 1
        with make(folder, CASES[case], to=numbers_of) as loader:
            loader.load_state_dict(states[0])
            rest = list(loader)
        if case == "as they come":
            assert len(flat(got)) in (len(flat(whole)) - 4, len(flat(whole)) - len(flat(whole)) % 4)
            assert len(flat(rest)) == len(flat(whole)) - 4 * nth
        else:
            assert (got, rest) == (whole[:nth] + whole[nth + 1 :], whole[nth:])


def test_a_collate_of_ones_own_that_fails_over_loose_samples_is_passed_over_as_well(folder):
    whole = load(folder, 4, 1)[0]
    fails = whole[0]  # of the samples of two files

    def collate(samples):
        found = [sample["number"] for sample in samples]
        if found == fails and not forgiven:
            raise ValueError("no")
        return found

    forgiven = []
    with make(folder, {}, collate=collate) as loader:
        got, states = taken(loader)
        assert got == [batch for batch in whole if batch != fails]
        forgiven.append(True)
        loader.load_state_dict(states[0])
        assert list(loader) == whole


def test_an_interrupt_while_it_goes_back_after_an_interrupt_loses_nothing(folder, monkeypatch):
    interrupts = iter([False, True, True, False])  # the first is the start
    with make(folder, {"shuffle": True}, to=FailingOnce(2, KeyboardInterrupt)) as loader:
        agenda = loader._session._agenda
        seek = agenda.seek

        def interrupted():
            if next(interrupts, False):
                raise KeyboardInterrupt
            seek()

        monkeypatch.setattr(agenda, "seek", interrupted)
        got, states = taken(loader)
        assert states[0] == states[1] == states[2]
    with make(folder, {"shuffle": True}, to=numbers_of) as loader:
        assert got == list(loader)


@pytest.mark.parametrize("error", [TimeoutError, KeyboardInterrupt])
@pytest.mark.parametrize("late", [False, True], ids=["while it waits", "when it has got a group"])
def test_after_a_wait_that_a_signal_has_ended_nothing_is_read_again(folder, monkeypatch, error, late):
    seeks = []
    with make(folder, {}) as loader:
        loader.warm_up()
        session, calls = loader._session, itertools.count()
        iterator = iter(loader)
        got = [numbers(next(iterator))]
        unpacker = session._engine.feed._next.__self__
        take, seek = unpacker._take, session._agenda.seek

        def interrupted(hand):
            if late:
                take(hand)
            if next(calls) in (1, 4, 5):
                raise error
            if not late:
                take(hand)

        monkeypatch.setattr(unpacker, "_take", interrupted)
        monkeypatch.setattr(session._agenda, "seek", lambda: [seeks.append(True), seek()])
        while len(got) < 7:
            with contextlib.suppress(error):
                got.append(numbers(next(iterator)))
    assert got == load(folder, 4, 1)[0]
    assert not seeks
