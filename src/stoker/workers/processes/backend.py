"""Processes: workers that share nothing with the consumer but slots, pipes and the board."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import time
from collections.abc import Collection

from stoker.interrupts import put_off
from stoker.memory import Slots, limits_explained, pipe
from stoker.plan import Run
from stoker.workers.backend import Answer, Death, Failed, Request
from stoker.workers.processes.answer_pipe import AnswerPipe
from stoker.workers.processes.board import END_WITH_STACK, Board
from stoker.workers.processes.dead_workers import DeadWorkers
from stoker.workers.processes.exit_causes import Exit
from stoker.workers.processes.launcher import Launcher
from stoker.workers.processes.records import (
    REQUEST_BYTES,
    Ask,
    Said,
    Say,
    pack_request,
    read_results,
    unpack_request,
    write_item,
    write_left_out,
)
from stoker.workers.processes.service import Ends
from stoker.workers.transport import SlotTransport

_ASK_S = 0.3  # for a worker to end by itself once told to, before SIGTERM
_TERMINATE_S = 0.3  # and then before SIGKILL
_KILL_S = (
    10.0  # for the system to take a killed process away: a busy one takes seconds, and who gives up leaves a zombie
)
_NO_RUN = Request(ticket=-1, run=Run(0, 0, 0, 0), length=0, slot=0)


class ProcessesBackend:
    """Writes requests into each worker's pipe, reads answers and deaths from one.

    ``shares_program``: workers were forked from this process, and so have the classes of the program that it runs.
    """

    def __init__(
        self, launcher: Launcher, transport: SlotTransport, store: int, *, shares_program: bool = False
    ) -> None:
        self._launcher = launcher
        self._slots = transport.slots
        self._store = store
        self._shares_program = shares_program
        with contextlib.ExitStack() as undo:
            undo.callback(launcher.close)
            self._board = Board()
            undo.callback(self._board.close)
            self._answers = AnswerPipe()
            undo.pop_all()
        self._requests: dict[int, tuple[int, int]] = {}  # worker -> our two ends of its pipe: read, write
        self._dead = DeadWorkers(self._board)
        self._length_asked = False  # of worker 0 as it is now
        self._untold: list[Death] = []  # several died at once while the dataset's length was asked for
        self._told: list[int] = []  # descriptors of the launcher's that had something to say when we last waited
        self._closing = self._closed = False

    def start(self, worker: int, *, is_needed: bool = True) -> None:
        """``is_needed``: it is an error if the system can start no more; else that counts as a death."""
        self._forget(worker)
        self._dead.started(worker, is_needed=is_needed)
        self._length_asked = self._length_asked and worker != 0
        self._board.prepare(worker)
        with limits_explained(), put_off(), contextlib.ExitStack() as undo:
            undo.callback(self._forget, worker)
            self._requests[worker] = reading, _ = pipe(blocking=False)
            ends = Ends(reading, self._answers.writing, self._slots.fd, self._board.fd, self._store)
            self._launcher.launch(worker, ends)
            undo.pop_all()

    def send(self, worker: int, request: Request) -> None:
        kind, in_slot = Ask.RUN, len(request.left_out)
        slot = self._slots.get(request.slot)
        if request.item is not None:
            kind, in_slot = Ask.ITEM, write_item(request, slot, shares_program=self._shares_program)
        elif request.left_out:
            write_left_out(request.left_out, slot)
        os.write(self._requests[worker][1], pack_request(request, kind, slot.capacity, in_slot))

    def recall(self, worker: int) -> int | None:
        """Reads the worker's pipe before the worker does: whoever reads a record has it."""
        try:
            record = os.read(self._requests[worker][0], REQUEST_BYTES)
        except BlockingIOError:
            return None
        return unpack_request(record)[1].ticket

    def wait(self, timeout: float | None) -> None:
        self._told = self._answers.wait(self._launcher.watched(), timeout)

    def news(self) -> list[Answer | Death]:
        said, deaths = self._listen()
        if not self._untold and not deaths:
            return self._news(said)
        untold, self._untold = self._untold, []
        # What they said before they died comes first.
        return [*untold, *self._news(said), *self._dead.found(deaths)]

    def wake(self) -> None:
        self._answers.wake()

    def progress(self, worker: int) -> int:
        return self._board.progress(worker)

    def end(self, worker: int, *, at_once: bool) -> None:
        """It writes down its stack first; a process that is stopped hears only SIGKILL."""
        self._launcher.kill(worker, signal.SIGKILL if at_once else END_WITH_STACK)

    def retire(self, worker: int) -> None:
        """Asks a worker that has nothing to do to end. ``news`` tells of its death."""
        os.write(self._requests[worker][1], pack_request(_NO_RUN, Ask.STOP))

    def pids(self, without: Collection[int] = ()) -> list[int]:
        living = self._dead.living(self._requests).difference(without)
        return [pid for worker in sorted(living) if (pid := self._board.pid(worker))]

    def length(self) -> int | Death | None:
        if self._untold:
            return self._untold.pop()
        if not self._length_asked:
            self._length_asked = True
            os.write(self._requests[0][1], pack_request(_NO_RUN, Ask.LENGTH))
        answers, deaths = self._listen()
        ended = [said for said in answers if said.kind in (Say.DIED, Say.NOT_STARTED)]
        self._untold += [*itertools.chain(*map(self._dead.told, ended)), *self._dead.found(deaths)]
        for said in answers:
            if said.kind == Say.LENGTH:
                return said.value
            if said.kind == Say.DONE:
                (failed,) = _answer(said, self._slots).results
                assert isinstance(failed, Failed)
                raise failed.error
        return self._untold.pop() if self._untold else None

    def close(self) -> None:
        """The stop ladder: ask, terminate, kill. Who is interrupted on it, by a second Ctrl-C, kills at once."""
        if self._closed:
            return
        is_first, self._closing = not self._closing, True
        try:
            if is_first:
                self._ask_to_stop()
                self._wait_for_end(_ASK_S)
                self._end_with(signal.SIGTERM, _TERMINATE_S)
        finally:
            self._end_with(signal.SIGKILL, _KILL_S)
            for worker in list(self._requests):
                self._forget(worker)
            self._free()

    def _free(self) -> None:
        if self._closed:
            return
        self._closed = True  # without a second try: somebody else may have the numbers of our descriptors by then
        with contextlib.ExitStack() as undo:  # which goes on after an interrupt
            undo.callback(self._launcher.close)
            undo.callback(self._board.close)
            undo.callback(self._answers.close)

    def _ask_to_stop(self) -> None:
        for worker in self._requests:
            while self.recall(worker) is not None:
                pass  # nobody will take it
            os.write(self._requests[worker][1], pack_request(_NO_RUN, Ask.STOP))

    def _end_with(self, number: signal.Signals, patience: float) -> None:
        for worker in self._dead.living(self._requests):
            with contextlib.suppress(ProcessLookupError):  # an interrupt kept us from hearing of its end
                self._launcher.kill(worker, number)
        self._wait_for_end(patience)

    def _wait_for_end(self, patience: float) -> None:
        """Of all workers, or until patience is at its end."""
        deadline = time.monotonic() + patience
        while self._dead.living(self._requests) and (left := deadline - time.monotonic()) > 0:
            self.wait(left)
            answers, deaths = self._listen()
            self._dead.note(answers, deaths)

    def _listen(self) -> tuple[list[Said], dict[int, Exit]]:
        """All answers there are, and the deaths that the launcher was found to know of while we waited."""
        deaths: dict[int, Exit] = {}
        if self._told:
            deaths, self._told = self._launcher.deaths(), []
        return self._answers.read(), deaths

    def _news(self, answers: list[Said]) -> list[Answer | Death]:
        news: list[Answer | Death] = []
        for said in answers:
            if said.kind == Say.DONE:
                news.append(_answer(said, self._slots))
            elif said.kind in (Say.DIED, Say.NOT_STARTED):
                news.extend(self._dead.told(said))
        return news

    def _forget(self, worker: int) -> None:
        for fd in self._requests.pop(worker, ()):
            os.close(fd)


def _answer(said: Said, slots: Slots) -> Answer:
    try:
        return read_results(said, slots.get(said.slot, said.capacity))
    except MemoryError as error:  # the worker could write it, but we have no room to map it
        failures: list[Failed] = [Failed(error)] * said.results
        return Answer(said.worker, said.ticket, said.slot, [*failures])
