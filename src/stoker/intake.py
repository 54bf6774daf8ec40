"""The intake: which batch the consumer is offered next, and what it has taken."""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from stoker.agenda import Agenda
from stoker.bridges import landed
from stoker.engine import Delivery, OpenUnit
from stoker.engine_owner import EngineOwner
from stoker.errors import BugError
from stoker.feed import Feed
from stoker.interrupts import Hand, is_interrupt, put_off
from stoker.observe import Failures, Meter
from stoker.workers.failure import ordinary

log = logging.getLogger("stoker")


class Intake:
    """Takes batches from the engine, wherever that was, and moves the cursor on as the consumer has them.

    Used in one turn at a time, but for ``offer_next_of``, ``jump`` and ``end``.

    Args:
        agenda: What there is to do.
        engine: That does it.
        hand: Where each batch lies until the consumer has it.
        bridge: What each batch goes through, if anything.
        meter: Is told what was delivered.
        failures: Takes note of samples that are left out.
    """

    def __init__(
        self,
        agenda: Agenda,
        engine: EngineOwner,
        hand: Hand[Delivery],
        bridge: Callable[[Any], Any] | None,
        meter: Meter,
        failures: Failures,
    ) -> None:
        self.hand = hand
        self.is_in_step = False  # the engine will deliver what the cursor comes to next
        self._agenda, self._units, self._progress = agenda, agenda.units, agenda.progress
        self._engine, self._bridge = engine, bridge
        self._meter, self._failures = meter, failures
        self._notes: set[str] = set()  # of workers, that were logged
        self._failed: Delivery | None = None  # an error was raised in its place; passed over if the consumer goes on

    def find_length(self) -> None:
        """Asks a worker, if nobody else knows."""
        if not self._agenda.is_counted:
            self._agenda.set_length(self._engine.started().length())

    def recount(self) -> None:
        """Where an epoch begins, the agenda takes on the dataset's length as it is now."""
        if self._agenda.recount():
            self.is_in_step, self._engine.is_stale = False, True

    def begin_epoch(self) -> None:
        """From now on with the dataset as it is now."""
        engine = self._engine
        self._settle()
        self.recount()
        bring_up_to_date = self._agenda.look()
        if bring_up_to_date is not None:
            self.is_in_step = False
            if engine.feed is not None:
                engine.feed.halt()
            bring_up_to_date()
        if engine.has_changed():
            self.is_in_step = False
            engine.renew()

    def warm_up(self, seconds: float) -> None:
        """Lets the workers get ahead of where the consumer is, for so long at most."""
        self.find_length()
        self._settle()
        self._seek(seconds)

    def cursor(self) -> Any:
        """Where the consumer is, with what it has by now."""
        held = self.hand.held
        return self._progress.after(held) if held is not None and held.is_taken else self._progress.cursor

    def jump(self, cursor: Any) -> None:
        """From now on what that cursor comes to next."""
        self._engine.check_usable()
        held = self.hand.held
        if held is not None and held.is_taken:
            self._units.forget(held)
        self._progress.cursor, self.hand.held, self._failed, self.is_in_step = cursor, None, None, False

    def _settle(self) -> None:
        """What the consumer has by now counts as taken; and what failed, since it goes on after that."""
        held = self.hand.held
        if self._failed is not None:
            self._advance(self._failed)
        elif held is not None and held.is_taken:
            self._advance(held)

    def offer(self) -> Delivery | None:
        """The next batch of the running epoch; None at its end. It counts as taken once its ``is_taken`` is set."""
        progress = self._progress
        if not self._agenda.is_counted:
            self.find_length()
        if self.hand.held is not None or self._failed is not None:
            self._settle()
        self._meter.ask()
        while not progress.at_end():
            delivery = self._next()
            if delivery.ended:
                self.hand.held, self.is_in_step = None, False
                self._units.raise_error()
                return None
            if delivery.skipped or delivery.error is not None:
                self._note_failures()
            if delivery.samples:
                return delivery
            self._advance(delivery)  # all were left out
        return None

    def offer_next_of(self, unit: OpenUnit, held: Delivery, nth: int) -> Delivery:
        """The next batch of a unit that has many, which is at hand already: most batches of files come this way."""
        bridge, moving = self._bridge, 0
        self._meter.ask()
        try:
            if bridge is None:
                data = unit.make(nth)
            else:
                self.is_in_step = False  # whoever interrupts it may leave something in the memory of other batches
                batch, began = unit.make(nth), perf_counter_ns()
                data = landed(bridge(batch))
                moving = perf_counter_ns() - began
                del batch  # so that its memory is free as soon as what became of it is
        except (Exception, SystemExit, GeneratorExit) as error:
            if is_interrupt(error):
                raise
            failed = Delivery(held.batch, unit=unit, nth=nth)
            self._advance(held)
            self._failed = failed
            told = ordinary(error)
            if told is error:
                raise
            raise told from error
        self._meter.handed(unit.sizes[nth], moving)
        held.data, held.is_taken, held.nth, self.is_in_step = data, False, nth, True  # at once
        return held

    def end(self) -> None:
        """Ends the engine for good."""
        try:
            self._engine.end()
        finally:
            held = self.hand.held
            if held is not None and held.is_taken:
                self._advance(held)
            self.hand.held = None  # which may hold memory that other batches are cut of

    def _next(self) -> Delivery:
        """What comes after the cursor, wherever the engine was; the same again until the cursor has moved on."""
        feed = self._engine.feed
        if not self.is_in_step or feed is None or not feed.is_sound:
            feed = self._seek()
        delivery = feed.take()
        if delivery is None:
            self.is_in_step = False
            self._engine.check_usable()
            raise BugError("the engine was told to stop, though nobody has closed it")
        if not delivery.is_noted:
            self._note(delivery)
            delivery.is_noted = True
        return delivery

    def _note(self, delivery: Delivery) -> None:
        made, handed = delivery.made, delivery.samples if delivery.error is None else 0
        if made is not None:
            if made.notes:
                self._log(made.notes)
            self._meter.delivered(delivery, made, handed)
        elif handed:
            self._meter.handed(handed, delivery.moving)

    def _seek(self, warm_up: float = 0.0) -> Feed:
        self.is_in_step, self.hand.held = False, None
        feed = self._engine.started()
        self._agenda.seek()
        with put_off():
            feed.seek(self._units, warm_up)
            self.is_in_step = True
        return feed

    def _advance(self, delivery: Delivery) -> None:
        progress, unit = self._progress, delivery.unit
        after, in_step = progress.after(delivery), self.is_in_step
        if unit is not None and delivery.nth + 1 < len(unit.sizes):
            in_step = False  # the others of it are nobody's any more
        progress.cursor, self.hand.held, self._failed, self.is_in_step = after, None, None, in_step  # at once
        self._units.forget(delivery)

    def _note_failures(self) -> None:
        """Takes note of what was left out of a batch, and raises the error that comes in its place."""
        progress, delivery = self._progress, self.hand.held
        assert delivery is not None
        error = delivery.error and ordinary(delivery.error)
        if delivery.skipped:
            batch, count = delivery.batch, len(delivery.skipped)
            try:
                what, of = progress.what, progress.all_of(batch)
                self._failures.note(delivery.skipped, batch, of, progress.left_out(), what)
            except Exception as too_many:
                if is_interrupt(too_many):
                    raise
                error, count = too_many, 0
                if delivery.otherwise is not None:
                    delivery.after, self.is_in_step = delivery.otherwise, False
            self._meter.skipped(len(delivery.skipped), replaced=self._failures.replaces)
            cursor = progress.leave_out(count)
            progress.cursor, delivery.skipped = cursor, ()
        if error is not None:
            delivery.error, self._failed = None, delivery
            try:
                raise error
            finally:
                del error, delivery  # it holds this frame, and with it the loader

    def _log(self, notes: tuple[str, ...]) -> None:
        """Each once, however many workers say so."""
        for note in notes:
            if note not in self._notes:
                self._notes.add(note)
                log.warning("%s", note)
