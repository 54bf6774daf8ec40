"""Workers that have died and were not started again."""

from __future__ import annotations

import os
from collections.abc import Iterable

from stoker.memory import limits_explained
from stoker.workers.backend import Death
from stoker.workers.processes.board import Board
from stoker.workers.processes.exit_causes import Exit, describe, likely_cause, oom_kills
from stoker.workers.processes.records import Said, Say


class DeadWorkers:
    """Tells of each death once: the nursery may tell of one, and then die itself, which means all of them.

    Args:
        board: Where workers note what they are at.
    """

    def __init__(self, board: Board) -> None:
        self._board = board
        self._workers: set[int] = set()
        self._optional: set[int] = set()  # whose start may fail
        self._oom_kills = oom_kills()  # so far

    def living(self, workers: Iterable[int]) -> set[int]:
        """Those of these that have not died."""
        return set(workers) - self._workers

    def started(self, worker: int, *, is_needed: bool = True) -> None:
        """It is there again. Unless it ``is_needed``, a start that fails is a death."""
        self._workers.discard(worker)
        (self._optional.discard if is_needed else self._optional.add)(worker)

    def note(self, said: Iterable[Said], ended: Iterable[int]) -> None:
        """Where nobody wants to know why."""
        self._workers.update(ended, (one.worker for one in said if one.kind in (Say.DIED, Say.NOT_STARTED)))

    def told(self, said: Said) -> list[Death]:
        """Of a death that was written into the pipe of answers.

        Raises:
            OSError: It is no death: the worker could not be started, and is needed.
        """
        if said.kind == Say.NOT_STARTED:
            self._workers.add(said.worker)
            if said.worker in self._optional:
                return [Death(said.worker, os.strerror(said.value))]
            with limits_explained():
                raise OSError(said.value, os.strerror(said.value))
        return self.found({said.worker: Exit(said.value, said.capacity)})

    def found(self, ended: dict[int, Exit]) -> list[Death]:
        """Those of them that nobody was told of yet."""
        return [self._death(worker, exit) for worker, exit in ended.items() if worker not in self._workers]

    def _death(self, worker: int, ended: Exit) -> Death:
        self._workers.add(worker)
        progress, stack = self._board.progress(worker), self._board.stack(worker)
        before, self._oom_kills = self._oom_kills, oom_kills()
        return Death(
            worker,
            describe(ended.code),
            progress,
            likely=likely_cause(ended, stack, before),
            stack=stack,
            pid=self._board.pid(worker),
        )
