"""Turns: one thread at a time uses an engine, and none once it was closed."""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from time import monotonic
from typing import TypeVar

from stoker.engine_owner import EngineOwner
from stoker.interrupts import Bell, is_interrupt

T = TypeVar("T")

_LEAVE_S = 10.0  # that close waits for whoever is in code of the user's; after that, they end all when they leave it
_LOOK_AGAIN_S = 0.05  # whether they have left: the engine may just have been started


class Turns:
    """Knows which thread uses the engine, and has it leave when the engine is to end.

    Args:
        name: What the user knows the engine's session as, for messages.
        engine: That is used.
        end: Ends all, for good. Called by whoever uses the engine last, perhaps more than once.
    """

    def __init__(self, name: str, engine: EngineOwner, end: Callable[[], None]) -> None:
        self._name, self._engine, self._end = name, engine, end
        self._user: int | None = None  # the thread that uses the engine
        # Rung when it has left, one for each that waits: a bell wakes one.
        self._bells: list[Bell] = []

    def take(self, work: Callable[[], T]) -> T:
        """Does that while nobody else uses the engine; if it was closed meanwhile, ends all."""
        me, is_mine = get_ident(), False
        try:
            if self._user is None:
                self._user, is_mine = me, True  # at once with the line before: no call in between
            self._engine.check_usable()  # last, since it may have been closed just before
            if not is_mine:
                raise RuntimeError(
                    f"this {self._name} is just being asked for something else, in another thread or by what it calls "
                    f"itself: ask it from one thread at a time"
                )
            return work()
        except BaseException as error:
            if self._engine.feed is not None and is_mine and is_interrupt(error):
                self._engine.feed.be_careful()
            raise
        finally:
            if is_mine:
                self._user = None  # without a call before it, so that no interrupt can keep it from being done
            if self._engine.is_closed:
                for bell in self._bells:
                    bell.ring()
                self._end()

    def close(self) -> None:
        """The engine was closed: ends all once nobody uses it. From any thread, and from a signal's handler."""
        if self._user is not None and self._engine.is_ours and not self._leaves():
            return
        self._end()

    def _leaves(self) -> bool:
        """Has whoever uses the engine leave it. False if that can't be waited for: they end all then."""
        left = Bell()
        self._bells.append(left)
        deadline = monotonic() + _LEAVE_S
        while self._user is not None and monotonic() < deadline:
            feed = self._engine.feed
            if feed is not None:
                feed.interrupt()
            if self._user == get_ident() or (feed is not None and feed.is_moving_here()):
                return False  # it is what we have interrupted, or waits for us
            left.wait(_LOOK_AGAIN_S)
        return self._user is None
