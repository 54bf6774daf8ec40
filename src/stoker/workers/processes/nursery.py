"""The nursery: one clean process that imports what a job needs and forks workers on demand.

    consumer                      nursery                        worker
       │── Launch + descriptors ────>│                              │
       │                             │── import modules, fork ─────>│
       │── request ────────────────────────────────────────────────>│
       │<───────────────────────────────────────────────── answer ──│
       │                             │<──────── end of the pidfd ───┘
       │<── DIED, in the answers' ───│
       │                             │
       │── end of the socket, or the consumer's own death: kill all workers, exit
       │── end of the lifeline: the system kills the nursery, also in the middle of an import

It has one thread, no CUDA and no JAX, so forking it is safe; the imports are paid once; and as it never runs
``__main__``, scripts need no guard. One nursery serves all loaders of a process and ends with the last of them. This is
the consumer's side; the other is ``nursery_process``.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import weakref

from stoker.errors import StartError
from stoker.memory import above_stdio, anonymous_file, pipe
from stoker.workers.imports import depth_of_workers
from stoker.workers.processes.exit_causes import Exit
from stoker.workers.processes.interpreter import Complaints, start_interpreter
from stoker.workers.processes.orders import Kill, Launch, send_order
from stoker.workers.processes.service import Ends
from stoker.workers.processes.shipment import Shipment
from stoker.workers.processes.surroundings import SINGLE_THREADED

_END_S = 1.0  # for the nursery to end by itself
_FOLLOW_S = 2.0  # for workers to die after their nursery


class Nursery:
    """The consumer's side."""

    _shared: Nursery | None = None
    _lock = threading.RLock()  # a collection may end a loader in the middle of starting another

    def __init__(self) -> None:
        with contextlib.ExitStack() as undo, contextlib.ExitStack() as theirs:
            self._socket, control = map(_raised, socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET))
            undo.enter_context(self._socket)
            theirs.enter_context(control)
            # The nursery and its workers have the writing end open: it ends with the last of them.
            self._held_open, holding = pipe()
            undo.callback(os.close, self._held_open)
            theirs.callback(os.close, holding)
            # Nobody but this process has the writing end open: it ends with us, or with ``release``.
            living, self._lifeline = pipe()
            theirs.callback(os.close, living)
            undo.callback(os.close, self._lifeline)
            self._complaints = Complaints(anonymous_file(), 0)
            undo.callback(os.close, self._complaints.fd)
            self._process = _start(control.fileno(), holding, living, self._complaints)
            undo.pop_all()
        self._owner = os.getpid()
        self._users = 0
        self._keys = itertools.count()
        _nurseries.add(self)

    @classmethod
    def shared(cls) -> Nursery:
        """The one of this process, made if there is none. Each call is to be followed by one ``release``."""
        with cls._lock:
            while True:
                nursery = cls._shared
                if nursery is None or nursery._owner != os.getpid():
                    nursery = cls._shared = cls()
                nursery._users += 1
                if cls._shared is nursery:  # else a collection has just ended it, with its last loader
                    return nursery

    def release(self, *, broken: bool = False) -> None:
        """Ends it when its last user has gone; ``broken``: nobody shall get it from ``shared`` any more."""
        with Nursery._lock:
            self._users -= 1
            if Nursery._shared is self and (broken or not self._users):
                Nursery._shared = None
            if not self._users and self._owner == os.getpid():
                self._end()

    def wait_for_workers(self) -> None:
        """It has died: until its workers have, too. For a moment they go on, and may write into their slots."""
        poll = select.poll()
        poll.register(self._held_open, select.POLLIN)
        poll.poll(_FOLLOW_S * 1000)

    def complaint(self) -> str:
        """It has died: why it could not even begin; nothing if it had."""
        return self._complaints.read()

    def _end(self) -> None:
        """The closed socket tells it to go; in the middle of a long import it hears nothing."""
        _nurseries.discard(self)
        self._socket.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        finally:
            for fd in (self._lifeline, self._held_open, self._complaints.fd):
                os.close(fd)

    def let_go_in_fork(self) -> None:
        """In a forked child: it holds nothing by which the nursery would think that its consumer is still there."""
        self._socket.close()
        os.close(self._lifeline)

    def fileno(self) -> int:
        return self._socket.fileno()

    def launch(self, worker: int, ends: Ends, shipment: Shipment) -> int:
        key = next(self._keys)
        job = [segment.fd for segment in shipment.segments()]  # first: it finds out which modules there are
        with contextlib.suppress(ConnectionError):  # it has died; whoever waits for the worker will notice
            send_order(self._socket, Launch(key, worker, shipment.modules, list(sys.path)), [*ends, *job])
        return key

    def kill(self, key: int, number: int) -> None:
        with contextlib.suppress(ConnectionError):
            send_order(self._socket, Kill(key, number), [])


_nurseries: weakref.WeakSet[Nursery] = weakref.WeakSet()  # of this process, or of the one that it was forked from


def _let_go_in_fork() -> None:
    for nursery in list(_nurseries):
        nursery.let_go_in_fork()
    _nurseries.clear()


os.register_at_fork(after_in_child=_let_go_in_fork)


class NurseryLauncher:
    """Workers are forked by the nursery, which also tells of their deaths, in the answers' pipe."""

    def __init__(self, shipment: Shipment) -> None:
        self._shipment = shipment
        self._nursery: Nursery | None = Nursery.shared()
        self._keys: dict[int, int] = {}
        self._complaint = ""

    def launch(self, worker: int, ends: Ends) -> None:
        if self._complaint:
            raise StartError(f"the process that starts workers cannot start:\n{self._complaint}")
        if self._nursery is None:
            self._nursery = Nursery.shared()
        self._keys[worker] = self._nursery.launch(worker, ends, self._shipment)

    def watched(self) -> list[int]:
        return [] if self._nursery is None else [self._nursery.fileno()]

    def deaths(self) -> dict[int, Exit]:
        """The nursery never speaks on its socket: that it is readable means that it has died, and its workers too."""
        if self._nursery is None:
            return {}
        self._nursery.wait_for_workers()
        self._complaint = self._nursery.complaint()
        dead = {worker: Exit(-signal.SIGKILL, complaint=self._complaint) for worker in self._keys}
        self._keys.clear()
        nursery, self._nursery = self._nursery, None
        nursery.release(broken=True)
        return dead

    def kill(self, worker: int, number: signal.Signals) -> None:
        if self._nursery is not None and worker in self._keys:
            self._nursery.kill(self._keys[worker], number)

    def close(self) -> None:
        nursery, self._nursery = self._nursery, None
        if nursery is not None:
            nursery.release()


def _raised(end: socket.socket) -> socket.socket:
    return end if end.fileno() > 2 else socket.socket(fileno=above_stdio(end.detach()))


def _start(control: int, holding: int, living: int, complaints: Complaints) -> subprocess.Popen[bytes]:
    return start_interpreter(
        ("stoker.workers.processes.nursery_process", "main"),
        [control, holding, living, os.getpid(), depth_of_workers()],
        descriptors=[control, holding, living],
        complaints=complaints,
        variables=SINGLE_THREADED | dict(os.environ),
    )
