"""Inline: the consumer's own thread does the work when it asks for a batch. Also the oracle of all tests."""

from __future__ import annotations

from collections import deque

from stoker.memory import Slots
from stoker.workers.backend import Answer, Death, Request
from stoker.workers.randomness import BorrowedGenerators
from stoker.workers.worker import Job, Worker


class InlineBackend:
    """One worker that works while it is waited for. Nobody is there to end it if it hangs."""

    def __init__(self, job: Job, slots: Slots, store: int) -> None:
        self._worker = Worker(0, job, slots, store, BorrowedGenerators(), [0], shared=True)
        self._queue: deque[Request] = deque()

    def start(self, worker: int) -> None:
        pass

    def send(self, worker: int, request: Request) -> None:
        self._queue.append(request)

    def recall(self, worker: int) -> int | None:
        return self._queue.pop().ticket if self._queue else None

    def wait(self, timeout: float | None) -> list[Answer | Death]:
        if timeout == 0 or not self._queue:
            return []
        return [self._worker.run(self._queue.popleft())]

    def wake(self) -> None:
        pass

    def place(self, worker: int) -> int:
        return self._worker.place[0]

    def end(self, worker: int, *, at_once: bool) -> None:
        pass

    def pids(self) -> list[int]:
        return []

    def length(self, timeout: float | None) -> int:
        return self._worker.length()

    def close(self) -> None:
        self._queue.clear()
        self._worker.close()
