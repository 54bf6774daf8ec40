"""Inline: the consumer's own thread does the work when it asks for a batch. Also the oracle of all tests."""

from __future__ import annotations

from collections import deque

from stoker.memory import Slots
from stoker.workers.backend import Answer, Death, Request
from stoker.workers.randomness import borrowed_generators
from stoker.workers.worker import Job, Worker


class InlineBackend:
    """One worker that works while it is waited for."""

    def __init__(self, job: Job, slots: Slots) -> None:
        self._worker = Worker(0, job, slots, borrowed_generators, shared=True)
        self._queue: deque[Request] = deque()

    def start(self, worker: int) -> None:
        pass

    def send(self, worker: int, request: Request) -> None:
        self._queue.append(request)

    def recall(self, worker: int) -> int | None:
        return self._queue.pop().ticket if self._queue else None

    def wait(self, block: bool) -> list[Answer | Death]:
        if not block or not self._queue:
            return []
        answer = self._worker.run(self._queue[0])  # stays queued if Ctrl-C comes in the middle
        self._queue.popleft()
        return [answer]

    def length(self) -> int:
        return self._worker.length()

    def close(self) -> None:
        self._queue.clear()
