"""A worker's progress: one number that it notes as it goes on, and others read only when something seems wrong."""

from __future__ import annotations

from typing import Protocol

NOT_UP = 0
MAKING_THE_DATASET = -1
IDLE = -2
AT_WORK = -3  # and nobody can tell at which batch
REFUSING = -4  # it has nothing to do, and could not make the dataset: that is its answer to each request

_NTH_BITS, _WAIT_BITS = 16, 8
_WAITS = 1 << _NTH_BITS  # counts, round and round, how often a wait for another worker has begun or ended
_WORDS = {
    NOT_UP: "while it started",
    MAKING_THE_DATASET: "while it made the dataset",
    IDLE: "while it had nothing to do",
    AT_WORK: "while it worked",
    REFUSING: "after it could not make the dataset",
}


class Place(Protocol):
    """Where a worker notes its progress, at index 0: a list, or memory that others see. Storing it is all it costs."""

    def __getitem__(self, index: int, /) -> int: ...

    def __setitem__(self, index: int, value: int, /) -> None: ...


def at_batch(ticket: int, nth: int) -> int:
    """It has begun the ``nth`` batch (from 1) of the run that it was sent as ``ticket``."""
    return ticket << _NTH_BITS + _WAIT_BITS | nth


def nth_batch(progress: int) -> int:
    """Which batch of its run it has begun; 0 if none."""
    return progress & _WAITS - 1 if progress > 0 else 0


def waited(progress: int) -> int:
    """The same batch, but a step further: what it does now has not begun before."""
    counter = (_WAITS << _WAIT_BITS) - _WAITS
    return progress & ~counter | progress + _WAITS & counter


def is_waiting(progress: int) -> bool:
    """Whether it waits for another worker."""
    return progress > 0 and bool(progress & _WAITS)


def phase(progress: int) -> str:
    """What it does where it is at no batch."""
    return _WORDS.get(progress, "")
