"""Threads: workers in the consumer's process, for datasets that wait (network, disk) or release the GIL."""

from __future__ import annotations

import os
import sys
import threading
import time
import traceback
from collections import deque
from queue import Empty, SimpleQueue
from typing import NamedTuple

from stoker.interrupts import Background, Bell
from stoker.memory import Slots, above_stdio
from stoker.workers.backend import Answer, Death, Request
from stoker.workers.progress import IDLE
from stoker.workers.randomness import THREAD_GENERATORS
from stoker.workers.transport import SlotTransport, Writer
from stoker.workers.worker import Job, Worker

_JOIN_S = 0.5  # a thread cannot be killed: those still in the user's code by then are left to end by themselves


class _Ended(NamedTuple):
    """A thread has ended, or was given up: then its code may still run."""

    thread: _Thread
    cause: str
    stack: str
    given_up: bool


class _Asked:
    """Instead of a request: make the dataset, and say how long it is."""


class _Length(NamedTuple):
    """The dataset's length, or why there is none."""

    found: int | Exception


class ThreadsBackend:
    """Each worker has a queue of its own, so that what it has not begun can be taken back; results share one."""

    def __init__(self, job: Job, transport: SlotTransport, store: int) -> None:
        self._job = job
        self._slots = transport.slots
        self._store = store
        self._results = _Results()
        self._threads: dict[int, _Thread] = {}
        self._closed = False

    def start(self, worker: int) -> None:
        store = -1
        if self._job.open_store is not None:
            store = above_stdio(os.dup(self._store))  # its own: it may come to open it when the loader has closed ours
        writer = Writer(self._slots, shared=True)
        own = Worker(worker, self._job, writer, store, THREAD_GENERATORS, [IDLE])
        self._threads[worker] = _Thread(own, store, self._results, self._slots)
        self._threads[worker].start()

    def send(self, worker: int, request: Request) -> None:
        self._threads[worker].requests.put(request)

    def recall(self, worker: int) -> int | None:
        return self._threads[worker].recall()

    def wait(self, timeout: float | None) -> None:
        if not self._results.said:
            self._results.bell.wait(timeout)

    def news(self) -> list[Answer | Death]:
        said = [self._results.said.popleft() for _ in range(len(self._results.said))]
        return [_news(one) for one in said if not isinstance(one, _Length)]

    def wake(self) -> None:
        self._results.bell.ring()

    def progress(self, worker: int) -> int:
        return self._threads[worker].worker.place[0]

    def end(self, worker: int, *, at_once: bool) -> None:
        """It cannot be ended, only left alone: what it still says is not listened to."""
        self._threads[worker].give_up()

    def pids(self) -> list[int]:
        return []

    def length(self) -> int | Death | None:
        """Asked of the thread, since what makes a dataset may make it for its own thread only, as sqlite3 does."""
        self._threads[0].ask_length()
        while self._results.said:
            said = self._results.said.popleft()
            if isinstance(said, _Ended):
                return _death(said)
            if isinstance(said, _Length):
                self._threads[0].length_asked = False
                if isinstance(said.found, Exception):
                    raise said.found
                return said.found
        return None

    def close(self) -> None:
        """Those that are still in the user's code when patience is at its end keep the slots' file open until then."""
        if self._closed:
            return
        for thread in self._threads.values():
            thread.stop()
        deadline = time.monotonic() + _JOIN_S
        for thread in self._threads.values():
            thread.join(max(0.0, deadline - time.monotonic()))
        self._closed = True


def _news(said: Answer | _Ended) -> Answer | Death:
    return said if isinstance(said, Answer) else _death(said)


def _death(said: _Ended) -> Death:
    thread, cause, stack, given_up = said
    return Death(thread.worker.number, cause, thread.worker.place[0], stack=stack, may_still_write=given_up)


class _Results:
    """What all threads have said, and the bell that they ring then."""

    def __init__(self) -> None:
        self.said: deque[Answer | _Ended | _Length] = deque()
        self.bell = Bell()

    def put(self, one: Answer | _Ended | _Length) -> None:
        self.said.append(one)
        self.bell.ring()


class _Thread:
    """One worker and its thread. ``store``: a descriptor to close at its end, or -1."""

    def __init__(self, worker: Worker, store: int, results: _Results, slots: Slots) -> None:
        self.worker = worker
        self._store = store
        self.requests: SimpleQueue[Request | _Asked | None] = SimpleQueue()
        self.length_asked = False
        self._results = results
        self._slots = slots
        self._given_up = self._stopped = self._left = False
        self._lock = threading.Lock()  # either its answer is heard or it is given up, never both
        # It is a daemon: at interpreter exit nobody waits for a batch that nobody will take.
        self._background = Background(self._live, f"stoker-worker-{worker.number}")

    def start(self) -> None:
        THREAD_GENERATORS.install()
        try:
            self._background.start()
        except BaseException:
            if self._background.join(0):  # there may be no more threads
                self._leave()
            raise

    def stop(self) -> None:
        """After what it is just making."""
        self._stopped = True
        self.worker.hurry()
        self.requests.put(None)

    def recall(self) -> int | None:
        try:
            request = self.requests.get_nowait()
        except Empty:
            return None
        return request.ticket if isinstance(request, Request) else None

    def ask_length(self) -> None:
        if not self.length_asked:
            self.length_asked = True
            self.requests.put(_Asked())

    def give_up(self) -> None:
        with self._lock:
            if self._given_up or self.worker.place[0] == IDLE:
                return
            self._given_up = True
            self.worker.abandon()
            stack = "".join(traceback.format_stack(sys._current_frames().get(self._background.thread.ident or 0)))
            self._results.put(_Ended(self, "it was given up", stack, given_up=True))

    def join(self, timeout: float) -> None:
        if not self._given_up:
            self._background.join(timeout)

    def _live(self) -> None:
        try:
            if self._slots.borrow(self):
                self._work()
        finally:
            with self._lock:  # it may be given up just now
                self.worker.close()
            self.worker.forget_dataset()
            self._leave()
            self._slots.give_back(self)

    def _leave(self) -> None:
        """By the thread as it ends, since it may outlive its loader; else by who could not start it."""
        if self._left:
            return
        self._left = True
        if self._store >= 0:
            os.close(self._store)
        THREAD_GENERATORS.uninstall()

    def _work(self) -> None:
        try:
            while (request := self.requests.get()) is not None and not self._stopped:
                answer: Answer | _Length = self._length() if isinstance(request, _Asked) else self.worker.run(request)
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

    def _length(self) -> _Length:
        try:
            return _Length(self.worker.length())
        except Exception as error:
            return _Length(error)
