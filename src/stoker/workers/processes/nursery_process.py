"""The nursery's own side: its whole life, from the first import to the death of its consumer."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import importlib
import os
import select
import signal
import socket
import sys
from pathlib import Path
from typing import NamedTuple, NoReturn

from stoker.workers.imports import become_maker, become_worker
from stoker.workers.processes.launcher import has_ended, how_it_ended
from stoker.workers.processes.orders import Kill, Launch, receive_order
from stoker.workers.processes.records import Said, Say
from stoker.workers.processes.service import (
    Ends,
    fail,
    flush_output,
    leave,
    raise_limit_of_descriptors,
    serve,
    settle_in,
)
from stoker.workers.processes.shipment import load_job
from stoker.workers.processes.signals import reset_signals

_PR_SET_PDEATHSIG = 1
_F_SETSIG = 10  # Linux's number
# What nobody edits while a loader is open: the interpreter, installed packages, and Stoker itself.
_INSTALLED = (sys.prefix, sys.base_prefix, str(Path(__file__).parents[3]))


def main(control: int, holding: int, living: int, consumer: int, depth: int) -> None:
    """Called in a fresh interpreter. ``holding`` is only held: that it ends tells the consumer that all have."""
    for fd in (control, holding, living):
        os.set_inheritable(fd, False)  # by programs that a worker starts
    try:
        watched = os.pidfd_open(consumer)
    except ProcessLookupError:  # a worker that has started a loader, and ended at once
        os._exit(0)
    _die_with_lifeline(living)
    become_maker(depth)
    reset_signals()
    raise_limit_of_descriptors()  # as the consumer may do with its own, later
    _ForkServer(socket.socket(fileno=control), watched, living, depth).run()


class _Child(NamedTuple):
    """A worker. ``answers``: where to tell of its death."""

    pid: int
    launch: Launch
    answers: int


class _ForkServer:
    """Forks workers when it is told to, and tells of their deaths, until its consumer is gone."""

    def __init__(self, control: socket.socket, consumer: int, living: int, depth: int) -> None:
        self._control, self._consumer, self._living, self._depth = control, consumer, living, depth
        self._children: dict[int, _Child] = {}  # by its pidfd, which no import can get in the way of, as it can SIGCHLD
        self._imported: set[str] = set()
        self._sources: dict[str, tuple[str, int]] = {}  # the user's own modules: their file, and its age when imported
        self._poll = select.poll()
        for fd in (control.fileno(), consumer):
            self._poll.register(fd, select.POLLIN)

    def run(self) -> None:
        while True:
            ready = {fd for fd, _ in self._poll.poll()}
            for pidfd in ready & self._children.keys():
                self._report_death(pidfd)
            if self._consumer in ready or (self._control.fileno() in ready and not self._receive()):
                self._end()

    def _receive(self) -> bool:
        """Carries out one message; False when there will be no more."""
        received = receive_order(self._control)
        if received is None:
            return False
        order, fds = received
        if isinstance(order, Kill):
            self._kill(order)
        else:
            self._launch(order, Ends(*fds[:-2]), (fds[-2], fds[-1]))
        return True

    def _launch(self, launch: Launch, ends: Ends, job: tuple[int, int]) -> None:
        sys.path[:] = launch.path
        self._import(launch.modules)
        try:
            self._fork(launch, ends, job)
        except OSError as error:
            os.write(ends.answers, Said(Say.NOT_STARTED, launch.worker, value=error.errno or 0).pack())
        for fd in (*ends, *job):
            os.close(fd)

    def _fork(self, launch: Launch, ends: Ends, job: tuple[int, int]) -> None:
        nursery = os.getpid()  # asked for by the child, it might be whoever has inherited it
        answers = os.dup(ends.answers)
        try:
            pid = os.fork()
            if not pid:
                self._become_worker(nursery, launch, ends, job)
            try:
                pidfd = os.pidfd_open(pid)
            except OSError:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                raise
        except OSError:
            os.close(answers)
            raise
        self._children[pidfd] = _Child(pid, launch, answers)
        self._poll.register(pidfd, select.POLLIN)

    def _import(self, modules: tuple[str, ...]) -> None:
        for name in modules:
            if name not in self._imported:
                self._imported.add(name)
                with contextlib.suppress(BaseException):  # the worker will meet it too, and can tell the user
                    importlib.import_module(name)
        flush_output()  # what they have printed as they were imported: each worker would print it again
        reset_signals()  # of which a module may have made anything
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

    def _become_worker(self, nursery: int, launch: Launch, ends: Ends, job: tuple[int, int]) -> None:
        try:
            _die_with_parent(nursery)
            become_worker(self._depth)
            self._control.close()
            for fd in (self._consumer, self._living, *self._children):
                os.close(fd)
            for child in self._children.values():
                os.close(child.answers)
            settle_in()
            self._forget_edited_modules()
            serve(launch.worker, ends, lambda: load_job(job))
        except BaseException:
            fail()
        leave()

    def _kill(self, kill: Kill) -> None:
        for pidfd, child in self._children.items():
            if child.launch.key == kill.key:
                with contextlib.suppress(ProcessLookupError):  # it has just died
                    signal.pidfd_send_signal(pidfd, kill.number)

    def _report_death(self, pidfd: int) -> None:
        child = self._children.pop(pidfd)
        self._poll.unregister(pidfd)
        os.close(pidfd)
        code, peak, _ = how_it_ended(child.pid)
        with contextlib.suppress(BrokenPipeError):  # the loader is closed
            os.write(child.answers, Said(Say.DIED, child.launch.worker, capacity=peak, value=code).pack())
        os.close(child.answers)

    def _end(self) -> NoReturn:
        for pidfd in self._children:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        for child in self._children.values():  # else they are left to the first process of a container
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child.pid, 0)
        os._exit(0)


def _die_with_lifeline(living: int) -> None:
    """The system kills us when its other end is closed, whatever we do then: the service can't listen while it imports.

    A thread could not either, in an import that holds the GIL, and forking would no longer be safe.
    """
    with contextlib.suppress(OSError):  # then it is noticed after the import
        fcntl.fcntl(living, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(living, _F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(living, fcntl.F_SETFL, fcntl.fcntl(living, fcntl.F_GETFL) | os.O_ASYNC)
    if has_ended(living):
        os._exit(0)


def _die_with_parent(nursery: int) -> None:
    """If the nursery is killed, so are its workers: nobody else would notice."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != nursery:
        os._exit(1)
