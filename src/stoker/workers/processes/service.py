"""What runs in a worker process: read a request, do it, answer; until told to stop, or the pipe ends."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import resource
import select
import sys
import threading
import traceback
from collections.abc import Callable
from time import process_time_ns
from typing import NamedTuple, NoReturn

from stoker.errors import add_note
from stoker.memory import Slots, fill_stdio
from stoker.workers.backend import Answer, Failed, Made, Request
from stoker.workers.failure import ordinary
from stoker.workers.processes.board import sign_in
from stoker.workers.processes.lifelines import watched
from stoker.workers.processes.records import (
    REQUEST_BYTES,
    Ask,
    Said,
    Say,
    read_item,
    read_left_out,
    unpack_request,
    write_results,
)
from stoker.workers.processes.signals import let_signals_through, reset_signals
from stoker.workers.progress import IDLE, MAKING_THE_DATASET, REFUSING, Place
from stoker.workers.randomness import OwnGenerators
from stoker.workers.transport import Writer
from stoker.workers.worker import Job, Worker

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # glibc's numbers
_TRIES = 2  # at unpacking and making the dataset: a file server may have had a bad moment
_PYTHONS_THRESHOLD = 700  # objects made, and not freed, after which CPython looks for garbage; 2000 from 3.14 on
_THRESHOLD = 2000
_KEPT_BYTES = 2**26  # that a worker may keep and not use; the other threshold can't be more than half of it


class Ends(NamedTuple):
    """The descriptors that a worker works with. ``requests`` does not block: the consumer may take a request back."""

    requests: int
    answers: int
    slots: int
    board: int
    store: int


def serve(number: int, ends: Ends, get_job: Callable[[], Job]) -> None:
    """A worker's whole life."""
    place = sign_in(ends.board, number)
    handler = _RequestHandler(number, ends, get_job, place)
    while True:
        place[0] = handler.progress_without_work
        record = _next_record(ends.requests)
        if record is None:
            return
        kind, request, capacity, in_slot = unpack_request(record)
        if kind is Ask.STOP:
            return
        said = handler.answer(kind, request, capacity, in_slot).pack()
        try:
            os.write(ends.answers, said)
        except BrokenPipeError:  # the consumer was killed meanwhile
            return


class _RequestHandler:
    """Makes the dataset before it looks at any request: if that kills it, no batch is to blame."""

    def __init__(self, number: int, ends: Ends, get_job: Callable[[], Job], place: Place) -> None:
        self._number = number
        self._slots = Slots(ends.slots)
        writer = Writer(self._slots, shared=False)
        self._worker: Worker | None = None
        self._refusal: Exception | None = None
        for _ in range(_TRIES):
            place[0] = MAKING_THE_DATASET
            try:
                self._worker = Worker(
                    number, get_job(), writer, ends.store, OwnGenerators(), place, cpu_clock=process_time_ns
                )
                self._worker.open()
                let_signals_through()  # which its modules may have blocked
                collect_less_garbage()
                self._refusal = None
                return
            except BaseException as error:  # kept, and raised at the first request
                self._worker = None
                self._refusal = ordinary(error)
        assert self._refusal is not None
        add_note(self._refusal, f"stoker: in worker {number}, while it unpacked or made the dataset")

    @property
    def progress_without_work(self) -> int:
        return IDLE if self._refusal is None else REFUSING

    def answer(self, kind: Ask, request: Request, capacity: int, in_slot: int) -> Said:
        slot = self._slots.get(request.slot, capacity)
        try:
            if self._worker is None:
                assert self._refusal is not None
                raise self._refusal
            if kind is Ask.ITEM:
                request = read_item(request, in_slot, slot)
            elif in_slot:
                request = request._replace(left_out=read_left_out(in_slot, slot))
            if kind is Ask.LENGTH:
                return Said(Say.LENGTH, self._number, value=self._worker.length())
            answer = self._worker.run(request)
        except BaseException as error:  # of the whole worker: each batch of the run fails with it
            failures: list[Made | Failed] = [Failed(error)] * max(request.run.size, 1)
            answer = Answer(self._number, request.ticket, request.slot, failures)
        return write_results(answer, slot)


def _next_record(requests: int) -> bytes | None:
    """The next request, or None when there will be none: everyone who could send one is gone."""
    while True:
        try:
            return os.read(requests, REQUEST_BYTES) or None
        except BlockingIOError:
            wait_readable(requests)


def wait_readable(fd: int) -> None:
    poll = select.poll()  # select() itself can't wait for descriptors above 1023
    poll.register(fd, select.POLLIN)
    poll.poll()


def settle_in() -> None:
    """Manners of a worker process: signals do what they should, standard output is no file's, one thread is enough."""
    reset_signals()
    fill_stdio()
    keep_freed_memory()
    raise_limit_of_descriptors()
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)


def raise_limit_of_descriptors() -> None:
    """As far as it goes without asking: a fork has all that its parent has open, and needs a few of its own."""
    with contextlib.suppress(AttributeError, OSError, ValueError):  # forked, with a resource.py of the user's
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def keep_freed_memory() -> None:
    """A batch's samples are freed together, and as many are made next: malloc shall not give the memory back between.

    It would, and fetch it again at a page fault a page: a quarter of the time of decoding 32 JPEGs.
    """
    with contextlib.suppress(AttributeError):  # not glibc
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_MMAP_THRESHOLD, _KEPT_BYTES // 2)
        libc.mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)


def collect_less_garbage() -> None:
    """The samples of a batch shall not set off the collector, nor shall it look at all modules and the dataset again.

    With torch there are 176,000 objects to look at: for batches of 256 dicts of two tensors, a fifth of the time.
    """
    gc.freeze()
    youngest, *older = gc.get_threshold()
    if youngest == _PYTHONS_THRESHOLD:  # else it is the user's
        gc.set_threshold(_THRESHOLD, *older)


def die_with(pid: int, lifeline: int) -> None:
    """Ends this process when that one ends, however it ends. ``lifeline``: our end of it, where there is one."""
    try:
        end = watched(pid, lifeline)
    except ProcessLookupError:
        os._exit(1)

    def watch() -> None:
        wait_readable(end)
        os._exit(1)

    threading.Thread(target=watch, name="stoker-watch", daemon=True).start()


def leave() -> NoReturn:
    """Ends this process without the exit handlers that it got from the process it was forked from."""
    _end_what_multiprocessing_began()
    flush_output()
    os._exit(0)


def _end_what_multiprocessing_began() -> None:
    """As in a process of its own: what was put into queues is written; daemons and temporary folders go."""
    multiprocessing, util = map(sys.modules.get, ("multiprocessing", "multiprocessing.util"))
    if multiprocessing is None or util is None:
        return
    with contextlib.suppress(Exception):
        for child in multiprocessing.active_children():
            if child.daemon and child._parent_pid == os.getpid():
                child.terminate()
        util._run_finalizers()  # but for those of the process that this one was forked from


def fail() -> NoReturn:
    """The same as ``leave``, with the traceback of the error that is being handled."""
    with contextlib.suppress(OSError, ValueError):  # it is closed
        if sys.stderr is not None:
            traceback.print_exc()
    flush_output()
    os._exit(1)


def flush_output() -> None:
    """Writes out what was printed. Also before a fork: the child would print what it inherits once more."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # None, closed, a pipe that nobody reads, or the user's own
            stream.flush()
