"""Processes: workers that share nothing with the consumer but slots, pipes and the board."""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import signal
import threading
import time

from stoker.interrupts import put_off
from stoker.memory import limits_explained, pipe
from stoker.plan import Run
from stoker.workers.backend import Answer, Death, Failed, Request
from stoker.workers.processes.board import END_WITH_STACK, Board
from stoker.workers.processes.exit_causes import Exit, describe, likely_cause, oom_kills
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
    write_item,
    write_left_out,
)
from stoker.workers.processes.service import Ends
from stoker.workers.transport import SlotTransport

_AT_ONCE = 64 * SAID_BYTES  # more are read in a second go
_ASK_S = 0.3  # for a worker to end by itself once told to, before SIGTERM
_TERMINATE_S = 0.3  # and then before SIGKILL
_KILL_S = 2.0  # for the system to take a killed process away
_NO_RUN = Request(ticket=-1, run=Run(0, 0, 0, 0), length=0, slot=0)


class ProcessesBackend:
    """Writes requests into each worker's pipe, reads answers and deaths from one."""

    def __init__(self, launcher: Launcher, transport: SlotTransport, store: int) -> None:
        self._launcher = launcher
        self._slots = transport.slots
        self._store = store
        with contextlib.ExitStack() as undo:
            undo.callback(launcher.close)
            self._board = Board()
            undo.callback(self._board.close)
            self._answers, self._answering = pipe()
            undo.pop_all()
        os.set_blocking(self._answers, False)
        self._watch([])
        self._requests: dict[int, tuple[int, int]] = {}  # worker -> our two ends of its pipe: read, write
        self._dead: set[int] = set()  # and not started again
        self._length_asked = False  # of worker 0 as it is now
        self._untold: list[Death] = []  # several died at once while the dataset's length was asked for
        self._told: list[int] = []  # descriptors of the launcher's that had something to say when we last waited
        self._oom_kills = oom_kills()
        self._waking = threading.RLock()
        self._closing = self._closed = False

    def start(self, worker: int) -> None:
        self._forget(worker)
        self._dead.discard(worker)
        self._length_asked = self._length_asked and worker != 0
        self._board.prepare(worker)
        with limits_explained(), put_off(), contextlib.ExitStack() as undo:
            undo.callback(self._forget, worker)
            self._requests[worker] = reading, _ = pipe(blocking=False)
            ends = Ends(reading, self._answering, self._slots.fd, self._board.fd, self._store)
            self._launcher.launch(worker, ends)
            undo.pop_all()

    def send(self, worker: int, request: Request) -> None:
        kind, in_slot = Ask.RUN, len(request.left_out)
        slot = self._slots.get(request.slot)
        if request.left_out:
            write_left_out(request.left_out, slot)
        elif request.item is not None:
            kind, in_slot = Ask.ITEM, write_item(request.item, slot)
        os.write(self._requests[worker][1], pack_request(request, kind, slot.capacity, in_slot))

    def recall(self, worker: int) -> int | None:
        """Reads the worker's pipe before the worker does: whoever reads a record has it."""
        try:
            record = os.read(self._requests[worker][0], REQUEST_BYTES)
        except BlockingIOError:
            return None
        return unpack_request(record)[1].ticket

    def wait(self, timeout: float | None) -> None:
        watched = self._launcher.watched()
        if watched != self._polled:
            self._watch(watched)
        ready = self._poll.poll(None if timeout is None else max(timeout, 0) * 1000)
        self._told = [fd for fd, _ in ready if fd != self._answers]

    def news(self) -> list[Answer | Death]:
        said, deaths = self._listen()
        if not self._untold and not deaths:
            return self._news(said)
        untold, self._untold = self._untold, []
        # What they said before they died comes first.
        return [*untold, *self._news(said), *self._deaths(deaths)]

    def wake(self) -> None:
        with self._waking:  # a descriptor that was closed may be somebody else's by now
            if not self._closed:
                os.write(self._answering, Said(Say.NOTHING, 0).pack())

    def place(self, worker: int) -> int:
        return self._board.place(worker)

    def end(self, worker: int, *, at_once: bool) -> None:
        """It writes down its stack first; a process that is stopped hears only SIGKILL."""
        self._launcher.kill(worker, signal.SIGKILL if at_once else END_WITH_STACK)

    def pids(self) -> list[int]:
        alive = set(self._requests) - self._dead
        return [pid for worker in sorted(alive) if (pid := self._board.pid(worker))]

    def length(self) -> int | Death | None:
        if self._untold:
            return self._untold.pop()
        if not self._length_asked:
            self._length_asked = True
            os.write(self._requests[0][1], pack_request(_NO_RUN, Ask.LENGTH))
        answers, deaths = self._listen()
        ended = [said for said in answers if said.kind in (Say.DIED, Say.NOT_STARTED)]
        self._untold += [*itertools.chain(*map(self._ended, ended)), *self._deaths(deaths)]
        for said in answers:
            if said.kind == Say.LENGTH:
                return said.value
            if said.kind == Say.DONE:
                (failed,) = self._results(said).results
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
            with self._waking:
                self._free()

    def _free(self) -> None:
        """Without a second try: somebody else may have the numbers of these descriptors by then."""
        if self._closed:
            return
        self._closed = True
        with contextlib.ExitStack() as undo:  # which goes on after an interrupt
            undo.callback(self._launcher.close)
            undo.callback(self._board.close)
            undo.callback(os.close, self._answering)
            undo.callback(os.close, self._answers)

    def _ask_to_stop(self) -> None:
        for worker in self._requests:
            while self.recall(worker) is not None:
                pass  # nobody will take it
            os.write(self._requests[worker][1], pack_request(_NO_RUN, Ask.STOP))

    def _end_with(self, number: signal.Signals, patience: float) -> None:
        for worker in set(self._requests) - self._dead:
            with contextlib.suppress(ProcessLookupError):  # an interrupt kept us from hearing of its end
                self._launcher.kill(worker, number)
        self._wait_for_end(patience)

    def _wait_for_end(self, patience: float) -> None:
        """Of all workers, or until patience is at its end."""
        deadline = time.monotonic() + patience
        while set(self._requests) - self._dead and (left := deadline - time.monotonic()) > 0:
            self.wait(left)
            answers, deaths = self._listen()
            self._dead |= {said.worker for said in answers if said.kind in (Say.DIED, Say.NOT_STARTED)} | set(deaths)

    def _listen(self) -> tuple[list[Said], dict[int, Exit]]:
        """All answers there are, and the deaths that the launcher was found to know of while we waited."""
        deaths: dict[int, Exit] = {}
        if self._told:
            deaths, self._told = self._launcher.deaths(), []
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
        news: list[Answer | Death] = []
        for said in answers:
            if said.kind == Say.DONE:
                news.append(self._results(said))
            elif said.kind in (Say.DIED, Say.NOT_STARTED):
                news.extend(self._ended(said))
        return news

    def _ended(self, said: Said) -> list[Death]:
        if said.kind == Say.NOT_STARTED:
            self._dead.add(said.worker)
            with limits_explained():
                raise OSError(said.value, os.strerror(said.value))
        return self._deaths({said.worker: Exit(said.value, said.capacity)})

    def _deaths(self, ended: dict[int, Exit]) -> list[Death]:
        """Each worker dies once: the nursery may tell of a death, and then die itself, which means all of them."""
        return [self._death(worker, exit) for worker, exit in ended.items() if worker not in self._dead]

    def _results(self, said: Said) -> Answer:
        try:
            return read_results(said, self._slots.get(said.slot, said.capacity))
        except MemoryError as error:  # the worker could write it, but we have no room to map it
            failures: list[Failed] = [Failed(error)] * said.results
            return Answer(said.worker, said.ticket, said.slot, [*failures])

    def _death(self, worker: int, ended: Exit) -> Death:
        self._dead.add(worker)
        place, stack = self._board.place(worker), self._board.stack(worker)
        before, self._oom_kills = self._oom_kills, oom_kills()
        return Death(
            worker,
            describe(ended.code),
            place,
            likely=likely_cause(ended, stack, before),
            stack=stack,
            pid=self._board.pid(worker),
        )

    def _forget(self, worker: int) -> None:
        for fd in self._requests.pop(worker, ()):
            os.close(fd)
