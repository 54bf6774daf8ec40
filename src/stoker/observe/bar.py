"""A progress bar: one pass over an epoch or a stream, shown a few times a second by the consumer's own ``next()``."""

from __future__ import annotations

import logging
import os
import weakref
from collections.abc import Callable
from time import monotonic
from typing import Any, Protocol

from stoker.interrupts import is_interrupt, put_off
from stoker.observe.pace import Pace
from stoker.observe.screen import Screen, found_screen

log = logging.getLogger("stoker")

_FIRST_S = 0.5  # what is over sooner needs no bar
_AGAIN_S = 0.2


class Counts(Protocol):
    """What a bar is drawn of."""

    @property
    def batches(self) -> int:
        """That were delivered."""

    @property
    def waited(self) -> float:
        """Seconds in which the consumer was blocked."""


class Bars:
    """The bar of what is being gone through, if the user wants to see one.

    Args:
        counts: Of the batches.
    """

    def __init__(self, counts: Counts) -> None:
        self.bar: ProgressBar | None = None
        self._counts = counts
        self._end: weakref.finalize[[], Any] | None = None  # of the bar: once, by us or with its iterator

    def begin(self, name: str, done: int, total: Callable[[], int | None] | None, iterator: object) -> None:
        """A new one, which ends when the iterator does, at the latest. For the others, see ``ProgressBar``."""
        self.end()
        self.bar = ProgressBar(self._counts, name, done, total)
        self._end = weakref.finalize(iterator, self.bar.end)

    def end(self) -> None:
        """Takes the bar away, if there is one. May be called twice."""
        end, self._end, self.bar = self._end, None, None
        if end is not None:
            end()

    def __reduce__(self) -> tuple[type[Bars], tuple[Counts]]:
        """A copy has no bar."""
        return Bars, (self._counts,)


class ProgressBar:
    """There is no thread: ``tick`` is called with each batch that is asked for, and draws if it is time to.

    Args:
        counts: Of the batches.
        name: Of what is being gone through.
        done: Batches of it that the consumer has already.
        total: Says how many batches there are in it, or None as long as nobody knows. None: nobody ever will.
    """

    def __init__(self, counts: Counts, name: str, done: int, total: Callable[[], int | None] | None) -> None:
        now = monotonic()
        self._counts, self._total = counts, total
        self._pace = Pace(name, done, counts.batches, counts.waited, now)
        self._due = now + _FIRST_S
        self._screen: Screen | None = None
        self._is_begun = self._is_over = False
        self._process = os.getpid()

    def tick(self) -> None:
        """The consumer asks for a batch."""
        if monotonic() >= self._due:
            self._due = float("inf")  # so that nothing that is drawn draws
            self._try(self._draw)
            self._due = monotonic() + _AGAIN_S

    def end(self) -> None:
        """It is over, or was broken off. May be called twice, and in a fork, which has no bar."""
        if not self._is_over and self._process == os.getpid():
            self._is_over, self._due = True, float("inf")
            self._try(self._leave)

    def _draw(self) -> None:
        if not self._is_begun:
            self._is_begun, self._screen = True, found_screen()
        if self._screen is not None and not self._is_over:
            self._count()
            self._screen.draw(self._pace.look(self._counts.batches, self._counts.waited, monotonic()))

    def _leave(self) -> None:
        if self._screen is not None:
            self._count()
            self._screen.end(self._pace.whole(self._counts.batches, self._counts.waited, monotonic()).summary)

    def _count(self) -> None:
        if self._pace.total is None and self._total is not None:
            self._pace.total = self._total()

    def _try(self, draw: Callable[[], None]) -> None:
        """A terminal that went away is no reason to end a training."""
        try:
            with put_off():
                draw()
        except Exception as error:
            if is_interrupt(error):
                raise
            log.debug("the progress bar is given up", exc_info=True)
            self._screen, self._is_begun = None, True
