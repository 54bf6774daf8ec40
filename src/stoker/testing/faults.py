"""Killing and stopping the workers of a loader while it is read."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import stoker
from stoker.systems import not_here

_KINDS = ("SIGKILL", "SIGSEGV", "SIGSTOP")  # by name, since Windows has not all of them
_PAUSE_S = 0.02, 0.2  # for which a worker is stopped: from, to


def chaos(loader: Any, *, faults: float = 0.1, seed: int = 0) -> Chaos:
    """Iterates over ``loader`` and does harm to its worker processes on the way. Each loop over it is one epoch.

    Before some batches a random worker is killed (SIGKILL), crashes (SIGSEGV), or is stopped for up to a fifth of a
    second (SIGSTOP, then SIGCONT). None stays stopped when the loop ends or is broken off. Where there are no worker
    processes, nothing happens.

    A batch over which ``max_deaths`` workers have died is given up, by contract. So that this does not come about by
    bad luck, a worker is killed only when all are up again and two batches per worker have come since the last time:
    in order and with a ``prefetch`` of up to 4 no batch meets three kills. Give the loader a higher ``max_deaths``
    where you prefetch more, or use ``in_order=False``.

    Args:
        loader: A Loader, fresh or in use.
        faults: How likely a fault is before a batch, from 0 to 1. One that is not possible yet comes later.
        seed: Of what is done when and to whom; the rest is a matter of timing.

    Returns:
        An iterable with ``survived``, a Counter of faults by the signal's name.

    Example:
        >>> import numpy as np, stoker
        >>> from stoker.testing import chaos
        >>> with stoker.Loader(np.arange(100), batch_size=5, workers=2) as loader:
        ...     disturbed = chaos(loader, faults=1.0)
        ...     print([int(batch[0]) for batch in disturbed] == list(range(0, 100, 5)))
        True
        >>> disturbed.survived.total() > 0
        True
    """
    return Chaos(loader, faults, seed)


class Chaos:
    """What ``chaos`` gives: an iterable, and ``survived``, the faults that did not keep the next batch from coming."""

    def __init__(self, loader: Any, faults: float, seed: int) -> None:
        for attribute in ("__iter__", "stats", "worker_pids"):
            if not hasattr(loader, attribute):
                raise TypeError(f"loader is a {type(loader).__name__}, which has no {attribute}: pass a stoker.Loader")
        if isinstance(faults, bool) or not isinstance(faults, int | float) or not 0 <= faults <= 1:
            raise ValueError(f"faults={faults!r}: pass how likely a fault is before a batch, from 0.0 to 1.0")
        self.survived: Counter[str] = Counter()
        self.found_workers = False  # there were processes that could be harmed
        self._loader = loader
        self._workers = loader.stats().workers
        self._faults = faults
        self._chance = random.Random(seed)
        self._pauses: list[Pause] = []
        self._sent: list[str] = []  # faults since the last batch
        self._owed: str | None = None
        self._killed = 0  # the process that was killed last
        self._since = 0  # batches since then

    def __iter__(self) -> Iterator[Any]:
        """One epoch."""
        iterator = iter(self._loader)
        try:
            while True:
                self._disturb()
                try:
                    batch = next(iterator)
                except StopIteration:
                    self._note_survived()
                    return
                self._note_survived()
                self._since += 1
                yield batch
        except stoker.WorkerDied as error:
            error.add_note(self._confession())
            raise
        finally:
            while self._pauses:
                self._pauses.pop().end()

    def _note_survived(self) -> None:
        self.survived.update(self._sent)
        self._sent.clear()

    def _confession(self) -> str:
        sent = self.survived + Counter(self._sent)
        return (
            f"stoker.testing.chaos: it has killed {sent.total() - sent['SIGSTOP']} workers so far, at least "
            f"{2 * self._workers} batches apart. If max_deaths is below 3, prefetch above 4, or in_order=False, "
            f"one batch may have met too many of them: raise max_deaths"
        )

    def _disturb(self) -> None:
        if self._owed is None and self._chance.random() < self._faults:
            self._owed = self._chance.choice(_KINDS)
        pids = self._loader.worker_pids
        self.found_workers = self.found_workers or bool(pids)
        if self._owed is None or not pids:
            return
        if not hasattr(os, "pidfd_open"):
            raise not_here("stoker.testing.chaos", "without Linux's pidfd_open it might harm another process")
        if self._owed == "SIGSTOP":
            self._stop(self._chance.choice(pids))
        elif self._may_kill(pids):
            self._kill(self._chance.choice(pids), signal.Signals[self._owed])

    def _may_kill(self, pids: list[int]) -> bool:
        if not self._killed:
            return True
        all_up = self._killed not in pids and len(pids) == self._workers
        return all_up and self._since >= 2 * self._workers

    def _kill(self, pid: int, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):  # it has ended by itself just now: another time
            with opened(pid) as pidfd:
                signal.pidfd_send_signal(pidfd, number)
            self._killed, self._since = pid, 0
            self._done(number)

    def _stop(self, pid: int) -> None:
        for pause in [pause for pause in self._pauses if pause.is_over]:
            pause.end()
            self._pauses.remove(pause)
        with contextlib.suppress(ProcessLookupError), opened(pid) as pidfd:
            self._pauses.append(Pause(pidfd, self._chance.uniform(*_PAUSE_S)))
            self._done(signal.SIGSTOP)

    def _done(self, number: signal.Signals) -> None:
        self._sent.append(number.name)
        self._owed = None


class Pause:
    """A process that is stopped, until its time is over or ``end`` is called: whatever comes first wakes it.

    Args:
        pidfd: The process. A duplicate is kept, and closed by ``end``.
        seconds: How long.
    """

    def __init__(self, pidfd: int, seconds: float) -> None:
        self._pidfd = os.dup(pidfd)
        self._timer = threading.Timer(seconds, self._send, [signal.SIGCONT])
        self._timer.name = "stoker-chaos"
        self._timer.daemon = True
        self._send(signal.SIGSTOP)
        self._timer.start()

    @property
    def is_over(self) -> bool:
        return not self._timer.is_alive()

    def end(self) -> None:
        self._timer.cancel()
        self._timer.join()
        self._send(signal.SIGCONT)
        os.close(self._pidfd)

    def _send(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):  # it has ended
            signal.pidfd_send_signal(self._pidfd, number)


@contextlib.contextmanager
def opened(pid: int) -> Iterator[int]:
    """A descriptor of a process that descends from this one: a number alone may be another's by the time it is used.

    Raises:
        ProcessLookupError: It has ended, and perhaps its number is that of a stranger.
    """
    pidfd = os.pidfd_open(pid)
    try:
        if not _descends_from_us(pid):
            raise ProcessLookupError(f"process {pid} is none of ours")
        yield pidfd
    finally:
        os.close(pidfd)


def _descends_from_us(pid: int) -> bool:
    while pid > 1:
        try:
            status = Path(f"/proc/{pid}/stat").read_text()
        except FileNotFoundError:
            return False
        pid = int(status.rpartition(")")[2].split()[1])
        if pid == os.getpid():
            return True
    return False
