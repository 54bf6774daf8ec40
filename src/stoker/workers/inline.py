"""Inline: the consumer's own thread does the work when it asks for a batch. Also the oracle of all tests."""

from __future__ import annotations

import math
import signal
from collections import deque
from functools import partial
from time import monotonic

from stoker.interrupts import is_from_outside, signal_behind
from stoker.workers.backend import Answer, Death, Request
from stoker.workers.randomness import BorrowedGenerators
from stoker.workers.transport import SlotTransport, Writer
from stoker.workers.worker import Job, Worker


class InlineBackend:
    """One worker that works while it is waited for. Nobody is there to end it if it hangs."""

    def __init__(self, job: Job, transport: SlotTransport, store: int) -> None:
        self._place = [0]
        writer = Writer(transport.slots, shared=True)
        own = partial(Worker, 0, job, writer, store, BorrowedGenerators(), self._place)
        self._alarm = _Alarm()
        self._new = partial(own, is_interrupt=self._is_interrupt)
        self._worker: Worker | None = None
        self._keeps = job.open_store is not None
        self._queue: deque[Request] = deque()
        self._answer: Answer | None = None  # to the first in the queue

    def start(self, worker: int) -> None:
        pass

    def send(self, worker: int, request: Request) -> None:
        self._queue.append(request)

    def recall(self, worker: int) -> int | None:
        """But for the first, which may have been made already."""
        return self._queue.pop().ticket if len(self._queue) > 1 else None

    def wait(self, timeout: float | None) -> None:
        """Whoever is interrupted has the batch made again, from its beginning."""
        if not self._queue or self._answer is not None:
            return
        self._alarm.look()
        try:
            self._answer = self._made().run(self._queue[0])
        except BaseException:
            if self._keeps:  # its store was closed, since it may have been locked
                self._worker = None
            raise

    def news(self) -> list[Answer | Death]:
        answer, self._answer = self._answer, None
        if answer is None:
            return []
        self._queue.popleft()
        return [answer]

    def wake(self) -> None:
        """It is about to be closed: nobody else wakes it."""
        worker = self._worker
        if worker is not None:
            worker.hurry()

    def progress(self, worker: int) -> int:
        return self._place[0]

    def end(self, worker: int, *, at_once: bool) -> None:
        pass

    def pids(self) -> list[int]:
        return []

    def length(self) -> int:
        self._alarm.look()
        return self._made().length()

    def close(self) -> None:
        self._queue.clear()
        if self._worker is not None:
            self._worker.close()
            self._worker.forget_dataset()

    def _made(self) -> Worker:
        if self._worker is None:
            self._worker = self._new()
        return self._worker

    def _is_interrupt(self, error: BaseException) -> bool:
        return is_from_outside(error) or (self._alarm.is_due() and signal_behind(error) == signal.SIGALRM)


class _Alarm:
    """The consumer's own, if it has set one before it asked for a batch."""

    def __init__(self) -> None:
        self._due = math.inf

    def look(self) -> None:
        now = monotonic()
        left = signal.getitimer(signal.ITIMER_REAL)[0] if hasattr(signal, "getitimer") else 0.0  # not on Windows
        self._due = now + left if left else math.inf

    def is_due(self) -> bool:
        return monotonic() >= self._due
