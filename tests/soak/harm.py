"""What is done to worker processes while they are read from."""

from __future__ import annotations

import contextlib
import random
import signal
import threading
from collections import Counter
from typing import Any

import psutil

from stoker.testing.faults import Pause, opened
from tests.children import nurseries

KILLS = ("SIGKILL", "SIGSEGV", "SIGTERM")
NURSERY = "SIGKILL of the nursery"
BOTH = "SIGKILL of a worker and the nursery"
STOP = "SIGSTOP"
_PAUSE_S = 0.01, 0.3  # from, to
_LATER_S = 0.0, 0.03  # after the batch before which it was decided


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
        self._timers: list[threading.Timer] = []

    def strike(self, loaders: list[Any]) -> None:
        """Perhaps harms a worker of one of these."""
        if not self._kinds or self._chance.random() >= self._often:
            return
        kind, pids = self._chance.choice(self._kinds), self._chance.choice(loaders).worker_pids
        victim = self._one_of([nursery.pid for nursery in nurseries()] if kind == NURSERY else pids)
        with contextlib.suppress(ProcessLookupError):  # it has ended by itself
            if victim and kind == STOP:
                self._stop(victim)
            elif victim and self._chance.random() < 0.5:
                self._kill(kind, victim)
            elif victim:
                self._kill_later(kind, victim)

    def end(self) -> None:
        """Nobody stays stopped, and no kill comes any more."""
        while self._timers:
            timer = self._timers.pop()
            timer.cancel()
            timer.join()
        while self._pauses:
            self._pauses.pop().end()

    def _kill_later(self, kind: str, pid: int) -> None:
        """When the consumer may be waiting, and not between two batches."""

        def kill() -> None:
            with contextlib.suppress(ProcessLookupError):
                self._kill(kind, pid)

        timer = threading.Timer(self._chance.uniform(*_LATER_S), kill)
        timer.name, timer.daemon = "stoker-soak", True
        timer.start()
        self._timers.append(timer)

    def _kill(self, kind: str, pid: int) -> None:
        with opened(pid) as pidfd:
            signal.pidfd_send_signal(pidfd, signal.SIGKILL if kind in (NURSERY, BOTH) else signal.Signals[kind])
        self._faults[kind] += 1
        for nursery in nurseries() if kind == BOTH else ():
            with opened(nursery.pid) as pidfd:
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)

    def _stop(self, pid: int) -> None:
        with opened(pid) as pidfd:
            self._pauses.append(Pause(pidfd, self._chance.uniform(*_PAUSE_S)))
        self._faults[STOP] += 1

    def _one_of(self, pids: list[int]) -> int:
        """0 if there is none. What has died and was not noticed yet does not count."""
        pid = self._chance.choice(pids) if pids else 0
        try:
            return pid if pid and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE else 0
        except psutil.NoSuchProcess:
            return 0
