"""The nursery: one clean process that imports what a job needs and forks workers on demand.

    consumer                      nursery                        worker
       │── Launch + descriptors ────>│                              │
       │                             │── import modules, fork ─────>│
       │── request ────────────────────────────────────────────────>│
       │<───────────────────────────────────────────────── answer ──│
       │                             │<──────────── SIGCHLD ────────┘
       │<── DIED, in the answers' ───│
       │                             │
       │── end of the socket, or the consumer's own death: kill all workers, exit

It has one thread, no CUDA and no JAX, so forking it is safe; the imports are paid once; and as it never runs
``__main__``, scripts need no guard. One nursery serves all loaders of a process and ends with the last of them.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from dataclasses import dataclass
from pathlib import Path

from stoker.memory import Segment
from stoker.workers.processes.autopsy import Exit
from stoker.workers.processes.records import Said, Say
from stoker.workers.processes.service import Ends, leave, raise_limit_of_descriptors, serve, settle_in
from stoker.workers.processes.shipment import SINGLE_THREADED, Shipment, load_job

_MESSAGE_BYTES = 2**17
_DESCRIPTORS = len(Ends._fields) + 1  # what a launch carries: a worker's ends, and the segment
_PR_SET_PDEATHSIG = 1
_END_S = 1.0  # for the nursery to end by itself
_FOLLOW_S = 2.0  # for workers to die after their nursery
# What nobody edits while a loader is open: the interpreter, installed packages, and Stoker itself.
_INSTALLED = (sys.prefix, sys.base_prefix, str(Path(__file__).parents[2]))


@dataclass(frozen=True)
class Launch:
    """Fork a worker; its descriptors come with the message."""

    key: int
    worker: int
    modules: tuple[str, ...]
    path: list[str]


@dataclass(frozen=True)
class Kill:
    """Send a signal to a worker, if it is still there."""

    key: int
    number: int


class Nursery:
    """The consumer's side."""

    _shared: Nursery | None = None
    _lock = threading.RLock()  # a collection may end a loader in the middle of starting another

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, contextlib.ExitStack() as undo:
            undo.enter_context(ours)
            # The nursery and its workers have the writing end open: it ends with the last of them.
            self._breath, breathing = os.pipe()
            undo.callback(os.close, self._breath)
            try:
                self._process = _start(theirs.fileno(), breathing)
            finally:
                os.close(breathing)
            undo.pop_all()
        self._socket = ours
        self._owner = os.getpid()
        self._users = 0
        self._keys = itertools.count()

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
                self._socket.close()
                self._end()

    def wait_for_workers(self) -> None:
        """It has died: until its workers have, too. For a moment they go on, and may write into their slots."""
        poll = select.poll()
        poll.register(self._breath, select.POLLIN)
        poll.poll(_FOLLOW_S * 1000)

    def _end(self) -> None:
        """The closed socket tells it to go; in the middle of a long import it hears nothing."""
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._breath)

    def fileno(self) -> int:
        return self._socket.fileno()

    def launch(self, worker: int, ends: Ends, segment: Segment, modules: tuple[str, ...]) -> int:
        key = next(self._keys)
        message = pickle.dumps(Launch(key, worker, modules, list(sys.path)))
        with contextlib.suppress(ConnectionError):  # it has died; whoever waits for the worker will notice
            socket.send_fds(self._socket, [message], [*ends, segment.fd])
        return key

    def kill(self, key: int, number: int) -> None:
        with contextlib.suppress(ConnectionError):
            self._socket.send(pickle.dumps(Kill(key, number)))


class NurseryLauncher:
    """Workers are forked by the nursery, which also tells of their deaths, in the answers' pipe."""

    def __init__(self, shipment: Shipment) -> None:
        self._shipment = shipment
        self._nursery = Nursery.shared()
        self._keys: dict[int, int] = {}

    def launch(self, worker: int, ends: Ends) -> None:
        shipment = self._shipment
        self._keys[worker] = self._nursery.launch(worker, ends, shipment.segment(), shipment.modules)

    def watched(self) -> list[int]:
        return [self._nursery.fileno()]

    def deaths(self) -> dict[int, Exit]:
        """The nursery never speaks on its socket: that it is readable means that it has died, and its workers too."""
        self._nursery.wait_for_workers()
        dead = {worker: Exit(-signal.SIGKILL) for worker in self._keys}
        self._keys.clear()
        self._nursery.release(broken=True)
        self._nursery = Nursery.shared()
        return dead

    def kill(self, worker: int, number: signal.Signals) -> None:
        if worker in self._keys:
            self._nursery.kill(self._keys[worker], number)

    def close(self) -> None:
        self._nursery.release()


def _start(control: int, breathing: int) -> subprocess.Popen[bytes]:
    code = (
        f"import sys; sys.path[:] = {sys.path!r}; "
        f"from stoker.workers.processes.nursery import main; main({control}, {breathing}, {os.getpid()})"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.DEVNULL,
        pass_fds=[control, breathing],
        env=SINGLE_THREADED | dict(os.environ),
    )


def main(fd: int, breathing: int, consumer: int) -> None:
    """The nursery's side: its whole life."""
    os.set_inheritable(breathing, False)  # by programs that a worker starts
    import numpy.random  # noqa: F401  # numpy loads it when first used, which would be in every worker anew

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise_limit_of_descriptors()  # as the consumer may do with its own, later
    _Service(socket.socket(fileno=fd), consumer).run()


class _Service:
    def __init__(self, control: socket.socket, consumer: int) -> None:
        self._control = control
        self._consumer = os.pidfd_open(consumer)
        self._children: dict[int, tuple[Launch, int]] = {}  # pid -> what it is, and where to tell of its death
        self._imported: set[str] = set()
        self._sources: dict[str, tuple[str, int]] = {}  # the user's own modules: their file, and its age when imported
        self._woken, self._waker = os.pipe()
        os.set_blocking(self._waker, False)
        os.set_blocking(self._woken, False)
        signal.set_wakeup_fd(self._waker)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def run(self) -> None:
        while True:
            ready, _, _ = select.select([self._control.fileno(), self._consumer, self._woken], [], [])
            if self._woken in ready:
                os.read(self._woken, 4096)
                self._report_deaths()
            if self._consumer in ready or (self._control.fileno() in ready and not self._receive()):
                self._end()

    def _receive(self) -> bool:
        """Carries out one message; False when there will be no more."""
        try:
            data, fds, _, _ = socket.recv_fds(self._control, _MESSAGE_BYTES, _DESCRIPTORS)
        except ConnectionResetError:
            return False
        if not data:
            return False
        message = pickle.loads(data)
        if isinstance(message, Kill):
            self._kill(message)
        else:
            self._launch(message, Ends(*fds[:-1]), Segment(fds[-1]))
        return True

    def _launch(self, launch: Launch, ends: Ends, segment: Segment) -> None:
        sys.path[:] = launch.path
        self._import(launch.modules)
        nursery = os.getpid()  # asked for by the child, it might be whoever has inherited it
        try:
            pid = os.fork()
        except OSError as error:
            os.write(ends.answers, Said(Say.UNBORN, launch.worker, value=error.errno or 0).pack())
        else:
            if not pid:
                self._become_worker(nursery, launch, ends, segment)
            self._children[pid] = launch, os.dup(ends.answers)
        for fd in (*ends, segment.fd):
            os.close(fd)

    def _import(self, modules: tuple[str, ...]) -> None:
        for name in modules:
            if name not in self._imported:
                self._imported.add(name)
                with contextlib.suppress(BaseException):  # the worker will meet it too, and can tell the user
                    importlib.import_module(name)
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None)
            if file and name not in self._sources and not file.startswith(_INSTALLED):
                with contextlib.suppress(OSError):
                    self._sources[name] = file, os.stat(file).st_mtime_ns

    def _forget_edited_modules(self) -> None:
        """In a new worker: if the user has edited a module since it was imported, import all of theirs afresh."""
        for file, age in self._sources.values():
            if not os.path.exists(file) or os.stat(file).st_mtime_ns != age:
                break
        else:
            return
        importlib.invalidate_caches()
        for name in self._sources:
            sys.modules.pop(name, None)

    def _become_worker(self, nursery: int, launch: Launch, ends: Ends, segment: Segment) -> None:
        try:
            _die_with_parent(nursery)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self._control.close()
            for fd in (self._consumer, self._woken, self._waker, *[fd for _, fd in self._children.values()]):
                os.close(fd)
            settle_in()
            self._forget_edited_modules()
            serve(launch.worker, ends, lambda: load_job(segment))
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
        leave()

    def _kill(self, kill: Kill) -> None:
        for pid, (launch, _) in self._children.items():
            if launch.key == kill.key:
                os.kill(pid, kill.number)

    def _report_deaths(self) -> None:
        while self._children:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
            if not pid:
                return
            if pid not in self._children:
                continue
            launch, answers = self._children.pop(pid)
            code = os.waitstatus_to_exitcode(status)
            with contextlib.suppress(BrokenPipeError):  # the loader is closed
                peak = usage.ru_maxrss * 1024
                os.write(answers, Said(Say.DIED, launch.worker, capacity=peak, value=code).pack())
            os.close(answers)

    def _end(self) -> None:
        for pid in self._children:
            os.kill(pid, signal.SIGKILL)
        os._exit(0)


def _die_with_parent(nursery: int) -> None:
    """If the nursery is killed, so are its workers: nobody else would notice."""
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != nursery:
        os._exit(1)
