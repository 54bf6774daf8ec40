"""Threads: workers in the consumer's process, for datasets that wait (network, disk) or release the GIL."""

from __future__ import annotations

import threading
from queue import Empty, SimpleQueue

from stoker.memory import Slots
from stoker.workers.backend import Answer, Death, Request
from stoker.workers.randomness import THREAD_GENERATORS
from stoker.workers.worker import Job, Worker

_JOIN_S = 5.0  # a thread cannot be killed: one that is still in the user's code by then is left to end by itself


class ThreadsBackend:
    """Each worker has a queue of its own, so that what it has not begun can be taken back; results share one."""

    def __init__(self, count: int, job: Job, slots: Slots) -> None:
        self._job = job
        self._slots = slots
        self._requests: list[SimpleQueue[Request | None]] = [SimpleQueue() for _ in range(count)]
        self._results: SimpleQueue[Answer] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._workers: list[Worker] = []
        self._closed = False
        THREAD_GENERATORS.install()

    def start(self, worker: int) -> None:
        self._workers.append(
            Worker(worker, self._job, self._slots, THREAD_GENERATORS.seeded, shared=True),
        )
        thread = threading.Thread(
            target=_work,
            args=(self._workers[-1], self._requests[worker], self._results),
            name=f"stoker-worker-{worker}",
            daemon=True,  # at interpreter exit nobody waits for a batch that nobody will take
        )
        thread.start()
        self._threads.append(thread)

    def send(self, worker: int, request: Request) -> None:
        self._requests[worker].put(request)

    def recall(self, worker: int) -> int | None:
        try:
            request = self._requests[worker].get_nowait()
        except Empty:
            return None
        return request.ticket if request else None

    def wait(self, block: bool) -> list[Answer | Death]:
        found: list[Answer | Death] = []
        try:
            if block:
                found.append(self._results.get())
            while True:
                found.append(self._results.get_nowait())
        except Empty:
            return found

    def length(self) -> int:
        return self._workers[0].length()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        for worker, queue in enumerate(self._requests):
            while self.recall(worker) is not None:
                pass
            queue.put(None)
        for thread in self._threads:
            thread.join(_JOIN_S)
        THREAD_GENERATORS.uninstall()


def _work(worker: Worker, requests: SimpleQueue[Request | None], results: SimpleQueue[Answer]) -> None:
    while (request := requests.get()) is not None:
        results.put(worker.run(request))
        del request
