"""Threads: workers in the consumer's process, for datasets that wait (network, disk) or release the GIL."""

from __future__ import annotations

import os
import sys
import threading
import time
import traceback
from queue import Empty, SimpleQueue
from typing import NamedTuple

from stoker.memory import Slots
from stoker.workers.backend import Answer, Death, Request
from stoker.workers.progress import IDLE
from stoker.workers.randomness import THREAD_GENERATORS
from stoker.workers.worker import Job, Worker

_JOIN_S = 0.5  # a thread cannot be killed: those still in the user's code by then are left to end by themselves


class _Ended(NamedTuple):
    """A thread has ended, or was given up: then its code may still run."""

    thread: _Thread
    cause: str
    stack: str
    given_up: bool


class ThreadsBackend:
    """Each worker has a queue of its own, so that what it has not begun can be taken back; results share one."""

    def __init__(self, job: Job, slots: Slots, store: int) -> None:
        self._job = job
        self._slots = slots
        self._store = store
        self._results: SimpleQueue[Answer | _Ended | None] = SimpleQueue()  # None: nothing, but wake up
        self._threads: dict[int, _Thread] = {}
        self._given_up: list[_Thread] = []
        self._closed = False

    def start(self, worker: int) -> None:
        store = -1
        if self._job.open_store is not None:
            store = os.dup(self._store)  # its own: it may come to open it when the loader has closed ours
        own = Worker(worker, self._job, self._slots, store, THREAD_GENERATORS, [IDLE], shared=True)
        self._threads[worker] = _Thread(own, store, self._results)

    def send(self, worker: int, request: Request) -> None:
        self._threads[worker].requests.put(request)

    def recall(self, worker: int) -> int | None:
        return self._threads[worker].recall()

    def wait(self, timeout: float | None) -> list[Answer | Death]:
        said = []
        try:
            if timeout != 0:
                said.append(self._results.get(timeout=timeout))
            while True:
                said.append(self._results.get_nowait())
        except Empty:
            return [_news(one) for one in said if one is not None]

    def wake(self) -> None:
        self._results.put(None)

    def place(self, worker: int) -> int:
        return self._threads[worker].worker.place[0]

    def end(self, worker: int, *, at_once: bool) -> None:
        """It cannot be ended, only left alone: what it still says is not listened to."""
        thread = self._threads[worker]
        thread.give_up()
        self._given_up.append(thread)

    def pids(self) -> list[int]:
        return []

    def length(self, timeout: float | None) -> int:
        return self._threads[0].worker.length()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        for thread in self._threads.values():
            while thread.recall() is not None:
                pass
            thread.requests.put(None)
        deadline = time.monotonic() + _JOIN_S
        try:
            for thread in self._threads.values():
                thread.join(max(0.0, deadline - time.monotonic()))
        finally:
            if any(thread.is_alive() for thread in [*self._threads.values(), *self._given_up]):
                self._slots.leave_open()  # they may still write into one


def _news(said: Answer | _Ended) -> Answer | Death:
    if isinstance(said, Answer):
        return said
    thread, cause, stack, given_up = said
    return Death(thread.worker.number, cause, thread.worker.place[0], stack=stack, haunted=given_up)


class _Thread:
    """One worker and its thread. ``store``: a descriptor to close at its end, or -1."""

    def __init__(self, worker: Worker, store: int, results: SimpleQueue[Answer | _Ended | None]) -> None:
        self.worker = worker
        self._store = store
        self.requests: SimpleQueue[Request | None] = SimpleQueue()
        self._results = results
        self._given_up = False
        self._lock = threading.Lock()  # either its answer is heard or it is given up, never both
        self._thread = threading.Thread(
            target=self._work,
            name=f"stoker-worker-{worker.number}",
            daemon=True,  # at interpreter exit nobody waits for a batch that nobody will take
        )
        THREAD_GENERATORS.install()
        self._thread.start()

    def recall(self) -> int | None:
        try:
            request = self.requests.get_nowait()
        except Empty:
            return None
        return request.ticket if request else None

    def give_up(self) -> None:
        with self._lock:
            if self._given_up or self.worker.place[0] == IDLE:
                return
            self._given_up = True
            self.worker.abandon()
            stack = "".join(traceback.format_stack(sys._current_frames().get(self._thread.ident or 0)))
            self._results.put(_Ended(self, "it was given up", stack, given_up=True))

    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def join(self, timeout: float) -> None:
        if not self._given_up and self._thread is not threading.current_thread():  # which may be who closes us
            self._thread.join(timeout)

    def _work(self) -> None:
        try:
            while (request := self.requests.get()) is not None:
                answer = self.worker.run(request)
                with self._lock:
                    if self._given_up:
                        return
                    self.worker.place[0] = IDLE
                    self._results.put(answer)
                del request, answer  # while it waits for the next one, nothing of the last is kept alive
        except BaseException as error:  # of the dataset's own making: KeyboardInterrupt
            with self._lock:
                if not self._given_up:
                    self._results.put(_Ended(self, type(error).__name__, traceback.format_exc(), given_up=False))
        finally:
            with self._lock:  # it may be given up just now
                self.worker.close()
            if self._store >= 0:
                os.close(self._store)
            THREAD_GENERATORS.uninstall()  # here, since it may outlive its loader, and goes on drawing
