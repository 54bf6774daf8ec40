"""Interrupts: what a signal's handler raises, while the sampler is asked or a batch is made, costs nobody a batch."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence

import pytest

from tests.torch_front.datasets import Numbers, numbers

torch = pytest.importorskip("torch", reason="torch is not installed")
data = torch.utils.data

COUNT = 24
_BRIEF_S = 0.05  # that interrupts are put off for a sampler, where one takes longer


class Interrupted(Exception):
    """What a handler of the user's raises."""


class Handler:
    """Raises, each time a signal comes, once it is on."""

    is_on, count = False, 0

    def __call__(self, number, frame):
        if self.is_on:
            self.count += 1
            raise Interrupted


@pytest.fixture
def handler():
    handler = Handler()
    before = signal.signal(signal.SIGUSR1, handler)
    yield handler
    signal.signal(signal.SIGUSR1, before)


class Signalling(Sequence):
    """Numbers; a signal comes whenever one is looked up in the process that made this."""

    def __init__(self, count):
        self.count, self.process = count, os.getpid()

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if index >= self.count:
            raise IndexError(index)
        if os.getpid() == self.process:
            signal.raise_signal(signal.SIGUSR1)
        return int(index)


class Own(data.Sampler):
    """Somebody's, a generator, which an exception ends."""

    def __init__(self, count):
        self.indices = Signalling(count)

    def __len__(self):
        return len(self.indices)

    def __iter__(self):
        for index in range(len(self.indices)):
            yield self.indices[index]


SAMPLERS = {"torch's": lambda: data.SubsetRandomSampler(Signalling(COUNT)), "one's own": lambda: Own(COUNT)}


def all_of(iterator):
    """What comes to a consumer that goes on after each interrupt."""
    found = []
    while True:
        try:
            for batch in iterator:
                found.append(batch.tolist())
            return found
        except Interrupted:
            pass


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("batch_size", [1, 4])
@pytest.mark.parametrize("options", [{}, {"in_order": False}, {"persistent_workers": True}], ids=str)
def test_an_interrupt_does_not_end_the_sampler(our_class, handler, name, batch_size, options):
    loader = our_class(Numbers(COUNT), batch_size, sampler=SAMPLERS[name](), num_workers=2, **options)
    for _ in range(2):
        handler.is_on = False
        iterator = iter(loader)
        handler.is_on = True
        found = [index for batch in all_of(iterator) for index in batch]
        assert sorted(found) == list(range(COUNT))
    assert handler.count >= 2  # in each epoch at least one; several that wait are one


class SlowSampler(Own):
    """Takes longer than interrupts are put off."""

    def __iter__(self):
        yield 0
        time.sleep(2 * _BRIEF_S)
        signal.raise_signal(signal.SIGINT)
        yield 1


@pytest.mark.parametrize("workers", [0, 1])
def test_a_sampler_that_was_ended_by_ctrl_c_is_not_taken_for_one_that_has_no_more(our_class, workers, monkeypatch):
    monkeypatch.setattr("stoker.torch.lookahead._BRIEF_S", _BRIEF_S)
    options = {"prefetch_factor": 1} if workers else {}
    iterator = iter(our_class(Numbers(2), sampler=SlowSampler(2), num_workers=workers, **options))
    with pytest.raises(KeyboardInterrupt):
        all_of(iterator)
    with pytest.raises(RuntimeError, match="KeyboardInterrupt has ended the generator"):
        all_of(iterator)


class InterruptedOnce(Numbers):
    """Ctrl-C comes while one of the samples is made."""

    has_come = False

    def __getitem__(self, index):
        if index == 3 and not self.has_come:
            self.has_come = True
            signal.raise_signal(signal.SIGINT)
        return index


def test_inline_the_batch_that_ctrl_c_broke_off_is_made_again(our_class):
    loader = our_class(InterruptedOnce(8), batch_size=2)
    iterator = iter(loader)
    found = [next(iterator).tolist()]
    with pytest.raises(KeyboardInterrupt):
        next(iterator)
    assert loader.state_dict()["_num_yielded"] == 1
    assert found[0] + numbers(iterator) == list(range(8))
