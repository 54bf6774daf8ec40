"""Measuring on a machine that others use too: what they disturbed is measured again, while patience lasts.

Two readers on two cores are slower by half when somebody else wants a core. Only time in user mode is counted, so
that the kernel's own work for a store, such as writing back, is not taken for a stranger's.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

QUIET = 0.05  # of a core, used by others
_LOOK_S = 0.2
_TRIES = 4

T = TypeVar("T")


class Others:
    """How much of a core others have used since this was made; a child of ours counts when it has ended."""

    def __init__(self) -> None:
        self._begin = time.monotonic()
        self._theirs = _user_s() - _own_s()

    def cores(self) -> float:
        theirs = _user_s() - _own_s() - self._theirs
        return max(0.0, theirs / (time.monotonic() - self._begin))


@dataclass(frozen=True)
class Heard(Generic[T]):
    """What a step found, and how many cores others used meanwhile."""

    result: T
    others: float


class Patience:
    """So many seconds may be spent, in the whole run, on waiting for quiet and on measuring again."""

    def __init__(self, seconds: float) -> None:
        self._left = seconds

    def quietest(self, step: Callable[[], T]) -> Heard[T]:
        tries = []
        for _ in range(_TRIES):
            self._wait()
            begin, others = time.monotonic(), Others()
            tries.append(Heard(step(), others.cores()))
            if tries[-1].others <= QUIET or self._left <= 0:
                break
            self._left -= time.monotonic() - begin
        return min(tries, key=lambda heard: heard.others)

    def _wait(self) -> None:
        while self._left > 0:
            others = Others()
            time.sleep(_LOOK_S)  # there is no event to wait for: this is the sample
            if others.cores() <= QUIET:
                return
            self._left -= _LOOK_S


def _user_s() -> float:
    user, nice, *_ = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    return (int(user) + int(nice)) / os.sysconf("SC_CLK_TCK")


def _own_s() -> float:
    return sum(resource.getrusage(who).ru_utime for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
