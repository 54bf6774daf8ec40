"""What runs in an actor: a worker like any other, whose results travel as one object a run.

    consumer ──hello──> which Python, Stoker and node is it?
             ──open───> make the dataset, out of the job in the object store
             ──run────> make a run of batches; back come the bytes of its slot
             ──stack──> where is the code now? Answered while a run is being made

Ray calls ``hello``, ``open`` and ``run`` one after the other, in one thread, and ``stack`` in another.
"""

from __future__ import annotations

import os
import pickle
import platform
import sys
import threading
import traceback
from time import perf_counter_ns, process_time_ns
from typing import Any, NamedTuple

import numpy as np
import ray

from stoker.errors import add_note, message_of
from stoker.memory import LooseArrays, Slots
from stoker.version import __version__
from stoker.workers.backend import Answer, Failed, Made, Request
from stoker.workers.failure import ordinary, pack_error
from stoker.workers.imports import become_worker
from stoker.workers.packing import unpack
from stoker.workers.processes.records import Said, write_results
from stoker.workers.processes.service import collect_less_garbage, keep_freed_memory
from stoker.workers.progress import IDLE
from stoker.workers.randomness import OwnGenerators
from stoker.workers.ray.setup import Setup
from stoker.workers.transport import Writer
from stoker.workers.worker import Worker

WATCH = "watch"  # the group of calls that another thread answers
_TRIES = 2  # at unpacking and making the dataset, as in worker processes
_SLOT = 0  # the only one: a run has left it before the next one is begun
_BOOT = "/proc/sys/kernel/random/boot_id"


class Versions(NamedTuple):
    """What must be the same here and there: pickles of one Python may not be readable for another."""

    python: str
    stoker: str

    @classmethod
    def here(cls) -> Versions:
        return cls(".".join(platform.python_version_tuple()[:2]), __version__)


class Hello(NamedTuple):
    """What an actor says of itself. ``boot``: of the system that its clock belongs to; ``clock``: what that said."""

    versions: Versions
    node: str
    pid: int
    boot: str
    clock: int


class RunResult(NamedTuple):
    """A run that was made: its slot up to the end of the table of results, in parts, and what is said of that."""

    said: Said
    parts: list[np.ndarray[Any, Any]]


class WorkerActor:
    """One worker. It knows its slot, and nothing of other workers, of order or of credit.

    Args:
        number: Of the worker.
        depth: Of workers of workers.
    """

    def __init__(self, number: int, depth: int) -> None:
        become_worker(depth)
        keep_freed_memory()
        self._number = number
        self._slots = Slots.create()
        self._loose = LooseArrays()  # which Ray copies into its object store from where the dataset has them
        self._has_store = False
        self._worker: Worker | None = None
        self._refusal: Exception | None = None
        self._thread = 0  # in which the user's code runs

    def hello(self) -> Hello:
        node = f"{ray.util.get_node_ip_address()} ({ray.get_runtime_context().get_node_id()[:8]})"
        return Hello(Versions.here(), node, os.getpid(), boot(), perf_counter_ns())

    def open(self, setup: Setup) -> None:
        """Makes the dataset. What that raises is kept, and raised at the first run: no call of Ray's fails of it."""
        self._thread = threading.get_ident()
        for _ in range(_TRIES):
            try:
                setup.logs.apply()
                setup.warnings.apply()
                setup.files.apply()
                job = unpack(setup.pickled.data, [array.data for array in setup.arrays])
                setup.logs.apply()  # again: modules that were imported may have set up their own
                writer = Writer(self._slots, shared=False, loose=self._loose)
                self._has_store = job.open_store is not None
                generators, file = OwnGenerators(), self._slots.fd
                self._worker = Worker(self._number, job, writer, file, generators, [IDLE], cpu_clock=process_time_ns)
                self._worker.open()
                collect_less_garbage()
                return
            except BaseException as error:
                self._worker = None
                self._refusal = ordinary(error)
        assert self._refusal is not None
        add_note(self._refusal, f"stoker: in worker {self._number}, while it unpacked or made the dataset")
        if isinstance(self._refusal, ImportError):
            add_note(self._refusal, "stoker: pass runtime_env={'working_dir': '.'} to stoker.Ray to send modules there")

    def run(self, request: Request) -> RunResult:
        """The batches of a run."""
        slot = self._slots.get(_SLOT)
        self._loose.is_allowed = request.run.size == 1 and not self._has_store  # whose samples may change
        try:
            item = None if request.item is None else pickle.loads(request.item)
            answer = self._opened().run(request._replace(slot=_SLOT, item=item))
        except BaseException as error:  # of the whole worker: each batch of the run fails with it
            failures: list[Made | Failed] = [Failed(error)] * max(request.run.size, 1)
            answer = Answer(self._number, request.ticket, _SLOT, failures)
        for result in answer.results:
            if isinstance(result, Failed):
                self._loose.clear()  # what it had taken belongs to no batch
                _explain(result.error)
        said = write_results(answer, slot)
        return RunResult(said, self._loose.parts(slot.view().buffer, said.end))

    def length(self) -> int | bytes:
        """How long the dataset is; or why that is not known, as a packed error."""
        try:
            return self._opened().length()
        except BaseException as error:
            return pack_error(error)

    @ray.method(concurrency_group=WATCH)  # type: ignore[untyped-decorator]
    def stack(self) -> str:
        """Where the user's code is."""
        frame = sys._current_frames().get(self._thread)
        return "".join(traceback.format_stack(frame)) if frame is not None else ""

    def _opened(self) -> Worker:
        if self._worker is None:
            assert self._refusal is not None
            raise self._refusal
        return self._worker


def _explain(error: BaseException) -> None:
    if isinstance(error, ValueError) and "read-only" in message_of(error):
        add_note(
            error,
            "stoker: on Ray, the arrays of a dataset lie in the object store, where all actors of a node share them. "
            "Have the dataset copy what it writes into, or pass a class or functools.partial, which each actor calls",
        )


def boot() -> str:
    """The start of the system that this is, whose processes share one clock; empty where it can't be told."""
    try:
        with open(_BOOT) as file:
            return file.read().strip()
    except OSError:
        return ""
