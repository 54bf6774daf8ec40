"""The feed: the way out, from the engine to the consumer. Knows no loader, so one can be forgotten.

    engine ── a unit's result ──> unpack ── a batch ──> bridge ──> you

Where batches go to a device, all of it is done ahead by a thread, the conveyor.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from operator import attrgetter
from time import perf_counter_ns
from typing import Any

from stoker.agenda import AgendaUnits
from stoker.agenda.agenda import Take
from stoker.bridges import Conveyor, landed
from stoker.engine import Delivery, Driver, Usage
from stoker.interrupts import Hand, is_interrupt, put_off


class Feed:
    """Takes results from the engine, unpacks them, and takes batches through the bridge.

    Args:
        driver: The engine, which from now on is used by nobody else.
        bridge: What each batch goes through, if anything.
        ahead: Batches to move ahead, in a thread; 0: each is moved when it is asked for.
        hand: Where each batch lies until the consumer has it.
    """

    def __init__(
        self, driver: Driver, bridge: Callable[[Any], Any] | None, ahead: int, hand: Hand[Delivery] | None = None
    ) -> None:
        self._driver = driver
        self._bridge = bridge
        self._ahead = ahead
        self._hand: Hand[Delivery] = hand or Hand()
        self._next: Take = driver.take
        self._unpacks = False
        self._is_spoiled = False  # the bridge was interrupted, and may have written into what other batches are cut of
        self._conveyor: Conveyor[Delivery] | None = None
        self._closing = threading.RLock()

    @property
    def is_sound(self) -> bool:
        """Whether ``take`` goes on with what comes next: see ``Driver.is_sound``."""
        if self._is_spoiled:
            return False
        return self._driver.is_sound if self._conveyor is None else self._conveyor.is_moving

    def length(self) -> int:
        """The dataset's length, as a worker finds it. To be asked for before the first ``seek``."""
        return self._driver.length()

    def seek(self, units: AgendaUnits, warm_up: float = 0.0) -> None:
        """From now on what becomes of these, and nothing of what was before.

        ``warm_up``: seconds to let workers get ahead.
        """
        unpacker = units.unpacker(self._driver.take, whole=not self._ahead)
        self._next = self._driver.take if unpacker is None else unpacker.take
        self._unpacks, self._is_spoiled = unpacker is not None, False
        self._driver.seek(units)
        self._driver.warm_up(warm_up)
        self._move_ahead()

    def take(self) -> Delivery | None:
        """The next batch; it stays in the hand, and is given again, until that is emptied. Blocks only while none is
        ready. None if ``interrupt`` was called meanwhile."""
        hand = self._hand
        if hand.held is None:
            if self._conveyor is None:
                self._next(hand)
            else:
                began = perf_counter_ns()
                self._conveyor.take(hand)
                if hand.held is not None:
                    hand.held.waited = perf_counter_ns() - began
        held = hand.held
        if held is not None:
            if held.make is not None:
                self._make(held)
            if self._bridge is not None and not held.is_moved:
                try:
                    self._move(held, self._bridge)
                except BaseException:
                    self._is_spoiled = self._unpacks
                    raise
            if held.is_own and self._conveyor is not None:
                self._conveyor.finished()
        return held

    def be_careful(self) -> None:
        """See ``Driver.be_careful``."""
        self._driver.be_careful()

    def interrupt(self) -> None:
        """From another thread: from now on ``take`` does not wait. It is about to be closed."""
        conveyor = self._conveyor
        if conveyor is not None:
            conveyor.interrupt()
        self._driver.interrupt(for_good=True)

    def halt(self) -> bool:
        """Ends the thread, if there is one. Whether the engine can be used further: see ``Driver.is_sound``."""
        conveyor = self._conveyor
        if conveyor is not None:
            conveyor.stop()
            self._conveyor = None  # last, so that whoever is interrupted can halt again
        return self._driver.is_sound

    def pids(self) -> list[int]:
        return self._driver.pids()

    def usage(self) -> Usage:
        return self._driver.usage()

    def is_moving_here(self) -> bool:
        """Whether it is the thread that moves batches ahead that asks."""
        conveyor = self._conveyor
        return conveyor is not None and conveyor.is_here()

    def close(self) -> bool:
        """Ends all. May be called again, and must be by whoever was interrupted in it.

        False if it is the thread that moves batches ahead that asks, as where a collection of garbage finds us in it:
        then it ends all when it is out of the engine.
        """
        if self._conveyor is not None and self._conveyor.is_here():
            self._conveyor.leave(then=self._driver.close)
            return False
        self.halt()  # which may last as long as what is just moved does, so an interrupt may end it
        with put_off(), self._closing:
            self._driver.close()
        return True

    def _move_ahead(self) -> None:
        if self._ahead:
            self._conveyor = Conveyor(self._pull, self._driver.interrupt, self._ahead, _weight, attrgetter("is_own"))
            self._conveyor.start()

    def _pull(self) -> Delivery | None:
        """In the conveyor's thread."""
        hand: Hand[Delivery] = Hand()
        self._next(hand)
        held = hand.held
        if held is None or held.is_own:
            return held
        if held.make is not None:
            self._make(held)
        if self._bridge is not None:
            self._move(held, self._bridge)
        return held

    def _make(self, delivery: Delivery) -> None:
        assert delivery.make is not None
        try:
            data = delivery.make()
            delivery.data, delivery.make = data, None
        except (Exception, SystemExit, GeneratorExit) as error:  # a function of the user's may collate it
            if is_interrupt(error):
                raise
            delivery.error, delivery.make = error, None
        finally:
            del delivery  # which the error would else hold, and be held by

    def _move(self, delivery: Delivery, bridge: Callable[[Any], Any]) -> None:
        if not delivery.samples or delivery.error is not None:
            delivery.is_moved = True
            return
        began = perf_counter_ns()
        try:
            # In its place, so that its memory is free as soon as what became of it is.
            delivery.data, delivery.is_moved = landed(bridge(delivery.data)), True
        except Exception as error:
            if is_interrupt(error):  # not of the batch, which is moved again
                raise
            delivery.data, delivery.error, delivery.is_moved = None, error, True
        finally:
            delivery.moved = perf_counter_ns()
            delivery.moving += delivery.moved - began
            del delivery  # which the error would else hold, and be held by


def _weight(delivery: Delivery) -> int:
    """One that has no batch is not on the device."""
    return 1 if delivery.samples else 0
