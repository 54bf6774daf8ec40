"""Signals whose handler raises in the middle of everything, as an impatient user's does."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any


class Interrupted(Exception):
    """What the user's own handler raises: an ordinary exception, unlike KeyboardInterrupt."""


class Storm:
    """Interrupts the main thread every few milliseconds, by turns with Ctrl-C and with an exception of the user's.

    What is raised in a finalizer Python ignores, and so does this.

    Args:
        where: Functions whose frame must be the one that is interrupted; none: wherever it is.
    """

    def __init__(self, *where: str) -> None:
        self._where = where
        self.is_on = False
        self.count = 0

    def handle(self, _number: int, frame: Any) -> None:
        if self.is_on and (not self._where or frame.f_code.co_name in self._where):
            self.count += 1
            raise KeyboardInterrupt if self.count % 2 else Interrupted

    @contextlib.contextmanager
    def every(self, seconds: float) -> Iterator[Storm]:
        hook, sys.unraisablehook = sys.unraisablehook, id  # pytest's own is Python, and would be interrupted too
        before = signal.signal(signal.SIGALRM, self.handle)
        signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
        try:
            yield self
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
            sys.unraisablehook = hook

    def all_of(self, iterator: Iterator[Any], look: Callable[[Any], Any]) -> list[Any]:
        """What comes to a consumer that goes on after each interrupt. What it has in hand is not interrupted."""
        got = []
        while True:
            try:
                self.is_on = True
                for batch in iterator:
                    self.is_on = False
                    got.append(look(batch))
                    del batch
                    self.is_on = True
                self.is_on = False
                return got
            except (Interrupted, KeyboardInterrupt):
                self.is_on = False
