"""Processes: workers that share nothing with the consumer but slots and pipes."""

from __future__ import annotations

import os
import select
import signal
import time

from stoker.errors import WorkerDied
from stoker.memory import Slots
from stoker.plan import Batch
from stoker.workers.backend import Death, Failed, Outcome, Request
from stoker.workers.failure import unpack_error
from stoker.workers.processes.launchers import Launcher
from stoker.workers.processes.records import (
    ANSWER_BYTES,
    REQUEST_BYTES,
    Ask,
    Say,
    done_from,
    pack_request,
    unpack_answers,
    unpack_request,
)
from stoker.workers.processes.service import Ends

_ANSWERS_AT_ONCE = 2**16 // ANSWER_BYTES  # all that a pipe holds
_ASK_S = 0.3  # for a worker to end by itself once told to, before SIGTERM
_TERMINATE_S = 0.3  # and then before SIGKILL
_KILL_S = 5.0  # for the system to take a killed process away
_LENGTH = Request(ticket=-1, batch=Batch(0, 0, 0, 0), length=0, slot=0, capacity=0)


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

    def wait(self, block: bool) -> list[Outcome | Death]:
        found = self._outcomes(self._read())
        while not found and block:
            answers, deaths = self._listen(None)
            # What they said before they died comes first.
            found = [*self._outcomes(answers), *[Death(n, describe(code)) for n, code in deaths.items()]]
        return found

    def length(self) -> int:
        os.write(self._requests[0][1], pack_request(_LENGTH, Ask.LENGTH))
        while True:
            answers, deaths = self._listen(None)
            for fields in answers:
                if fields[0] == Say.LENGTH:
                    return fields[5]
                if fields[0] == Say.FAILED:
                    raise self._failed(fields).error
                deaths[fields[1]] = fields[5]
            for worker, code in deaths.items():
                raise WorkerDied(f"worker {worker} died while it made the dataset: {describe(code)}")

    def close(self) -> None:
        """The stop ladder: ask, terminate, kill."""
        if self._closed:
            return
        self._closed = True
        alive = set(self._requests)
        for worker in self._requests:
            os.write(self._requests[worker][1], pack_request(_LENGTH, Ask.STOP))
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
            alive = alive - {fields[1] for fields in answers if fields[0] == Say.DIED} - set(deaths)
        return alive

    def _listen(self, timeout: float | None) -> tuple[list[tuple[int, ...]], dict[int, int]]:
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

    def _read(self) -> list[tuple[int, ...]]:
        try:
            return unpack_answers(os.read(self._answers, _ANSWERS_AT_ONCE * ANSWER_BYTES))
        except BlockingIOError:
            return []

    def _outcomes(self, answers: list[tuple[int, ...]]) -> list[Outcome | Death]:
        found: list[Outcome | Death] = []
        for fields in answers:
            if fields[0] == Say.DONE:
                found.append(done_from(fields))
            elif fields[0] == Say.FAILED:
                found.append(self._failed(fields))
            elif fields[0] == Say.DIED:
                found.append(Death(fields[1], describe(fields[5])))
        return found

    def _failed(self, fields: tuple[int, ...]) -> Failed:
        _, worker, ticket, slot, capacity, size, *_ = fields
        packed = self._slots.view(slot, capacity).buffer[:size]
        return Failed(worker, ticket, slot, capacity, unpack_error(packed))

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
