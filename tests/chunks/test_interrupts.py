"""Ctrl-C at any moment of the consumer's part: whoever goes on gets what is left, and nothing twice."""

from __future__ import annotations

import sys
import weakref

import pytest

from stoker import Chunks, Loader, Threads
from stoker.agenda import grouped_progress
from stoker.agenda.chunks import agenda, groups, opening, units
from tests.chunks.files import load, numbers, write_chunks

FILES = {module.__file__ for module in (agenda, groups, grouped_progress, opening, units)}


class Interrupt:
    """Raises KeyboardInterrupt at the nth call that an agenda of chunk files makes, or return to it: signals are looked
    at just there, and between two lines without a call nothing can come in between. ``fired`` tells whether it did."""

    def __init__(self, nth: int) -> None:
        self.left = nth
        self.fired = False

    def profile(self, frame, event, _):
        caller = frame if event.startswith("c_") else frame.f_back
        if self.fired or caller is None or caller.f_code.co_filename not in FILES:
            return
        if frame.f_code.co_filename == weakref.__file__ or caller.f_back.f_code.co_filename == weakref.__file__:
            return  # a finalizer: what is raised there, Python ignores
        self.left -= 1
        if self.left < 0:
            self.fired = True
            raise KeyboardInterrupt


def taken_with_interrupt(folder, nth: int, **options) -> tuple[list[list[int]], bool]:
    interrupt = Interrupt(nth)
    got = []
    with Loader(Chunks(folder, interleave=1), 4, **options) as loader:
        iterator = iter(loader)
        sys.setprofile(interrupt.profile)
        try:
            while True:
                try:
                    got.append(numbers(next(iterator)))
                except KeyboardInterrupt:
                    continue
                except StopIteration:
                    break
        finally:
            sys.setprofile(None)
    return got, interrupt.fired


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # in a finalizer, Python ignores it
@pytest.mark.parametrize("options", [{"shuffle": False}, {"shuffle": True}, {"workers": Threads(1)}], ids=repr)
@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_at_any_call(tmp_path, options, step):
    """The batch that was just on its way to the consumer may be lost to it, as with any iterator; no other."""
    write_chunks(tmp_path / "data", [3, 5, 2, 6])
    whole, next_epoch = load(tmp_path / "data", 4, 2, **options)
    lost = 0
    for nth in range(0, 10_000, step):
        got, fired = taken_with_interrupt(tmp_path / "data", nth, **options)
        if not fired:
            assert got == whole
            break
        if got == whole + next_epoch:
            continue  # the end of the epoch was what got lost
        missing = [batch for batch in whole if batch not in got]
        assert [batch for batch in whole if batch in got] == got
        assert len(missing) <= 1
        lost += len(missing)
    assert nth > 100
    assert lost < nth / step / 10
