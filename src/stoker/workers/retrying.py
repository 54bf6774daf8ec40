"""Retrying: calls code of the user's again if it failed in a way that may pass, in the worker that it runs in."""

from __future__ import annotations

import random
from collections.abc import Callable
from time import monotonic
from typing import Any

from stoker.errors import ChunkError, add_note
from stoker.interrupts import Bell
from stoker.plan import derive
from stoker.sources import IsInterrupt, Retry
from stoker.workers.randomness import Generators


class Retrying:
    """For one worker.

    Args:
        retry: How often, and after which errors.
        generators: Are in the same state each time that it is tried.
        is_interrupt: Whether an exception is none of the user's code.
        seed: Of the waits: it must differ from worker to worker.
    """

    def __init__(self, retry: Retry, generators: Generators, is_interrupt: IsInterrupt, *seed: int) -> None:
        self._retry, self._generators, self._is_interrupt = retry, generators, is_interrupt
        self._luck = random.Random(derive(*seed))
        self._bell, self._is_ended = Bell(), False  # no Event: inline, an interrupt could leave its lock taken
        self._count = 0

    def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """What the function returns, or the error that it raised the last time."""
        state = self._generators.state()
        for nth in range(self._retry.times):
            try:
                return function(*args, **kwargs)
            except Exception as error:
                if not self._may_pass(error):
                    raise
                self._wait(self._retry.wait(nth, self._luck.random()))
                if self._is_ended:
                    raise
            self._count += 1
            self._generators.restore(state)
        try:
            return function(*args, **kwargs)
        except Exception as error:
            if self._may_pass(error):
                add_note(error, f"stoker: it was tried {self._retry.times + 1} times")
            raise

    def _wait(self, seconds: float) -> None:
        """So long, or until it is ended."""
        until = monotonic() + seconds
        while not self._is_ended and (left := until - monotonic()) > 0:
            self._bell.wait(left)

    def _may_pass(self, error: BaseException) -> bool:
        """Whether it is one of those after which to try again. Of chunk files, what was behind it is looked at."""
        behind = error.__context__ if isinstance(error, ChunkError) else None
        return isinstance(behind or error, self._retry.on) and not self._is_interrupt(error)

    def end(self) -> None:
        """From any thread: nobody waits for this worker any more, so that it does not wait either."""
        self._is_ended = True
        self._bell.ring()

    def counted(self) -> int:
        """How often something was tried again since this was called last."""
        count, self._count = self._count, 0
        return count
