"""What is done to worker processes while they are read from."""

from __future__ import annotations

import contextlib
import os
import random
import signal
from collections import Counter
from typing import Any

import psutil

from stoker.testing.faults import Pause

KILLS = ("SIGKILL", "SIGSEGV", "SIGTERM")
NURSERY = "SIGKILL of the nursery"
STOP = "SIGSTOP"
_PAUSE_S = 0.01, 0.3  # from, to


class Harm:
    """Before a batch, now and then, one fault.

    Args:
        seed: Of a chance of its own: what depends on timing here must change nothing elsewhere.
        kinds: What may be done.
        often: How likely it is before a batch.
        faults: Where to count what was done.
    """

    def __init__(self, seed: float, kinds: tuple[str, ...], often: float, faults: Counter[str]) -> None:
        self._chance = random.Random(seed)
        self._kinds = kinds
        self._often = often
        self._faults = faults
        self._pauses: list[Pause] = []

    def strike(self, loaders: list[Any]) -> None:
        """Perhaps harms a worker of one of these."""
        if not self._kinds or self._chance.random() >= self._often:
            return
        kind, pids = self._chance.choice(self._kinds), self._chance.choice(loaders).worker_pids
        if kind == NURSERY:
            self._kill(nurseries(), signal.SIGKILL, kind)
        elif kind == STOP:
            self._stop(pids)
        else:
            self._kill(pids, signal.Signals[kind], kind)

    def end(self) -> None:
        """Nobody stays stopped."""
        while self._pauses:
            self._pauses.pop().end()

    def _kill(self, pids: list[int], number: signal.Signals, kind: str) -> None:
        pid = self._alive(pids)
        if pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
                self._faults[kind] += 1

    def _stop(self, pids: list[int]) -> None:
        pid = self._alive(pids)
        if pid:
            with contextlib.suppress(ProcessLookupError):
                self._pauses.append(Pause(os.pidfd_open(pid), self._chance.uniform(*_PAUSE_S)))
                self._faults[STOP] += 1

    def _alive(self, pids: list[int]) -> int:
        """One of them; 0 if there is none. What has died and was not noticed yet does not count."""
        pid = self._chance.choice(pids) if pids else 0
        try:
            return pid if pid and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE else 0
        except psutil.NoSuchProcess:
            return 0


def nurseries() -> list[int]:
    """Ours: at most one, but for one that has just died."""
    found = []
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
            if "nursery import main" in " ".join(child.cmdline()):
                found.append(child.pid)
    return found
