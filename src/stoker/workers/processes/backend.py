"""Processes: workers that share nothing with the consumer but slots and pipes."""

from __future__ import annotations

import os
import select
import signal
import time

from stoker.errors import WorkerDied
from stoker.memory import Slots
from stoker.plan import Run
from stoker.workers.backend import Answer, Death, Failed, Request
from stoker.workers.processes.launcher import Launcher
from stoker.workers.processes.records import (
    REQUEST_BYTES,
    SAID_BYTES,
    Ask,
    Said,
    Say,
    pack_request,
    read_results,
    unpack_request,
    unpack_said,
)
from stoker.workers.processes.service import Ends

_AT_ONCE = 64 * SAID_BYTES  # more are read in a second go
_ASK_S = 0.3  # for a worker to end by itself once told to, before SIGTERM
_TERMINATE_S = 0.3  # and then before SIGKILL
_KILL_S = 2.0  # for the system to take a killed process away
_NO_RUN = Request(ticket=-1, run=Run(0, 0, 0, 0), length=0, slot=0, capacity=0)


class ProcessesBackend:
    """Writes requests into each worker's pipe, reads answers and deaths from one."""

    def __init__(self, launcher: Launcher, slots: Slots) -> None:
        self._launcher = launcher
        self._slots = slots
        self._answers, self._answering = os.pipe()
        os.set_blocking(self._answers, False)
        self._watch([])
        self._requests: dict[int, tuple[int, int]] = {}  # worker -> our two ends of its pipe: read, write
        self._closed = False

    def start(self, worker: int) -> None:
        self._forget(worker)
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        self._requests[worker] = reading, writing
        self._launcher.launch(worker, Ends(reading, self._answering, self._slots.fd))

    def send(self, worker: int, request: Request) -> None:
        os.write(self._requests[worker][1], pack_request(request))

    def recall(self, worker: int) -> int | None:
        """Reads the worker's pipe before the worker does: whoever reads a record has it."""
        try:
            record = os.read(self._requests[worker][0], REQUEST_BYTES)
        except BlockingIOError:
            return None
        return unpack_request(record)[1].ticket

    def wait(self, block: bool) -> list[Answer | Death]:
        found = self._news(self._read())
        while not found and block:
            said, deaths = self._listen(None)
            # What they said before they died comes first.
            found = [*self._news(said), *[self._death(worker, code) for worker, code in deaths.items()]]
        return found

    def length(self) -> int:
        os.write(self._requests[0][1], pack_request(_NO_RUN, Ask.LENGTH))
        while True:
            answers, deaths = self._listen(None)
            for said in answers:
                if said.kind == Say.LENGTH:
                    return said.value
                if said.kind == Say.DONE:
                    (failed,) = self._results(said).results
                    assert isinstance(failed, Failed)
                    raise failed.error
                deaths[said.worker] = said.value
            for worker, code in deaths.items():
                raise WorkerDied(f"worker {worker} died while it made the dataset: {describe(code)}")

    def close(self) -> None:
        """The stop ladder: ask, terminate, kill."""
        if self._closed:
            return
        self._closed = True
        alive = set(self._requests)
        for worker in self._requests:
            while self.recall(worker) is not None:
                pass  # nobody will take it
            os.write(self._requests[worker][1], pack_request(_NO_RUN, Ask.STOP))
        alive = self._wait_for_end(alive, _ASK_S)
        for number, patience in ((signal.SIGTERM, _TERMINATE_S), (signal.SIGKILL, _KILL_S)):
            for worker in alive:
                self._launcher.kill(worker, number)
            alive = self._wait_for_end(alive, patience)
        for worker in list(self._requests):
            self._forget(worker)
        os.close(self._answers)
        os.close(self._answering)
        self._launcher.close()

    def _wait_for_end(self, alive: set[int], patience: float) -> set[int]:
        """The workers that are still there when patience is at its end."""
        deadline = time.monotonic() + patience
        while alive and (left := deadline - time.monotonic()) > 0:
            answers, deaths = self._listen(left)
            alive = alive - {said.worker for said in answers if said.kind == Say.DIED} - set(deaths)
        return alive

    def _listen(self, timeout: float | None) -> tuple[list[Said], dict[int, int]]:
        """Waits for something to happen, then gives all answers there are, and the deaths the launcher knows of."""
        watched = self._launcher.watched()
        if watched != self._polled:
            self._watch(watched)
        ready = self._poll.poll(None if timeout is None else timeout * 1000)
        deaths = self._launcher.deaths() if any(fd != self._answers for fd, _ in ready) else {}
        return self._read(), deaths

    def _watch(self, watched: list[int]) -> None:
        self._polled = watched
        self._poll = select.poll()
        for fd in (self._answers, *watched):
            self._poll.register(fd, select.POLLIN)

    def _read(self) -> list[Said]:
        """All that has been said so far."""
        said: list[Said] = []
        try:
            while len(records := os.read(self._answers, _AT_ONCE)) == _AT_ONCE:
                said.extend(unpack_said(records))
        except BlockingIOError:
            return said
        return [*said, *unpack_said(records)] if said else unpack_said(records)

    def _news(self, answers: list[Said]) -> list[Answer | Death]:
        return [
            self._results(said) if said.kind == Say.DONE else self._death(said.worker, said.value) for said in answers
        ]

    def _results(self, said: Said) -> Answer:
        return read_results(said, self._slots.get(said.slot, said.capacity))

    def _death(self, worker: int, code: int) -> Death:
        """What is still in its pipe it can't have died of."""
        unbegun = []
        while (ticket := self.recall(worker)) is not None:
            unbegun.append(ticket)
        return Death(worker, describe(code), tuple(unbegun))

    def _forget(self, worker: int) -> None:
        for fd in self._requests.pop(worker, ()):
            os.close(fd)


def describe(code: int) -> str:
    """An exit code in words: ``SIGKILL (-9)``, ``exit code 1``."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"{signal.Signals(-code).name} ({code})"
    except ValueError:
        return f"signal {-code}"
