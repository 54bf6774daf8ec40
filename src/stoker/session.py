"""A session: one consumer and the engine that works for it, from the first batch it asks for to the end."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import get_ident
from time import monotonic, perf_counter_ns
from typing import Any, TypeVar

from stoker.agenda import Agenda
from stoker.bridges import landed
from stoker.engine import Delivery, OpenUnit
from stoker.engine_owner import EngineOwner
from stoker.errors import BugError, ClosedError
from stoker.feed import Feed
from stoker.interrupts import Bell, Hand, is_interrupt, put_off
from stoker.observe import Failures, Meter, Stats
from stoker.settings import Settings
from stoker.stores import OpenStore
from stoker.workers.failure import ordinary
from stoker.workers.worker import Job

T = TypeVar("T")

log = logging.getLogger("stoker")

_LEAVE_S = 10.0  # that close waits for whoever is in code of the user's; after that, they end all when they leave it
_LOOK_AGAIN_S = 0.05  # whether they have left: the engine may just have been started


class Session:
    """Has the engine do what is on the agenda, and knows what the consumer has taken of it.

    Args:
        name: What it is to the user, for messages.
        agenda: What there is to do.
        job: What a worker does.
        settings: How.
        failures: Takes note of samples that are left out.
        new_store: Makes a file for the workers' store, if they have one.
        reopen_store: Gives what opens that store now that the dataset has changed, or raises.
    """

    def __init__(
        self,
        name: str,
        agenda: Agenda,
        *,
        job: Job,
        settings: Settings,
        failures: Failures,
        new_store: Callable[[], int | None] | None = None,
        reopen_store: Callable[[], OpenStore | None] | None = None,
    ) -> None:
        self.hand: Hand[Delivery] = Hand()  # what was offered to the consumer last
        self._name = name
        self._agenda, self._settings, self._failures = agenda, settings, failures
        self._engine = EngineOwner(name, job, settings, self.hand, new_store, reopen_store)
        self._notes: set[str] = set()
        self._failed: Delivery | None = None  # an error was raised in its place; passed over if the consumer goes on
        self._user: int | None = None  # the thread that uses the engine
        self._left: Bell | None = None  # rung when it has left
        self._in_step = False  # the engine will deliver what the cursor comes to next
        self._meter = Meter(0 if settings.workers.is_inline else settings.workers.n)
        self._closed = False

    @property
    def is_fresh(self) -> bool:
        """Whether it has never started, so that no worker has the plan yet, and was not closed."""
        return not self._engine.has_started and not self._closed

    @property
    def shard(self) -> tuple[int, int]:
        return self._agenda.shard

    def set_shard(self, shard: tuple[int, int]) -> None:
        """Goes on as that shard, from where the consumer is. Only before the start.

        Raises:
            StateError: It is where only the shard that it was can go on.
        """
        self._agenda.set_shard(shard)
        self._engine.set_plan(self._agenda.plan)

    @property
    def epoch(self) -> int:
        """The one that is being taken, or that comes next."""
        return self._agenda.epoch

    def __len__(self) -> int:
        """Batches in an epoch, as the dataset is now. A worker may have to be asked."""
        self._recount()
        if not self._agenda.is_counted:
            self._in_turn(self._find_length)
        return len(self._agenda)

    def state(self) -> dict[str, Any]:
        """Where the consumer is, with what it has by now, as JSON can hold it."""
        if not self._agenda.is_counted:
            self._in_turn(self._find_length)
        held, agenda = self.hand.held, self._agenda
        return agenda.state(agenda.after(held) if held is not None and held.is_taken else agenda.cursor)

    def load(self, state: dict[str, Any]) -> None:
        """Goes to where ``state`` was saved.

        Raises:
            StateError: It is damaged, or of something else.
        """
        if not self._agenda.is_counted:
            self._in_turn(self._find_length)
        self._jump(self._agenda.from_state(state))

    def go_to(self, epoch: int) -> None:
        """To its beginning."""
        self._jump(self._agenda.go_to(epoch))

    def end_epoch(self) -> None:
        """After the last batch of it; what was prefetched of the next one stays."""
        self._agenda.cursor = self._agenda.go_to(self.epoch + 1)

    def offer(self) -> Delivery | None:
        """The next batch of the running epoch; None at its end. It counts as taken once its ``is_taken`` is set.

        Whoever is interrupted before that is offered it again.
        """
        held = self.hand.held
        if held is not None and held.unit is not None and held.is_taken and self._in_step:
            nth = held.nth + 1
            if nth < len(held.unit.sizes):
                return self._offer_next_of(held.unit, held, nth)
        return self._in_turn(self._offer)

    def begin_epoch(self) -> None:
        """Has the workers make what comes from now on with the dataset as it is now.

        If it has changed since they got it, they are started anew, and what they have prefetched is thrown away.
        """
        self._in_turn(self._begin_epoch)

    def _begin_epoch(self) -> None:
        self._settle()
        self._recount()
        bring_up_to_date = self._agenda.look()
        if bring_up_to_date is not None:
            self._in_step = False
            if self._engine.feed is not None:
                self._engine.feed.halt()
            bring_up_to_date()
        if self._engine.has_changed():
            self._in_step = False
            self._engine.renew()

    def _recount(self) -> None:
        """Where an epoch begins, the agenda takes on the dataset's length as it is now."""
        if self._agenda.recount():
            self._in_step, self._engine.is_stale = False, True

    def _jump(self, cursor: Any) -> None:
        """From now on what that cursor comes to next."""
        self.check_usable()
        held = self.hand.held
        if held is not None and held.is_taken:
            self._agenda.forget(held)
        self._agenda.cursor, self.hand.held, self._failed, self._in_step = cursor, None, None, False

    def warm_up(self, seconds: float) -> None:
        """Lets the workers get as far ahead as they may, for so long at most."""
        self._in_turn(lambda: self._warm_up(seconds))

    def pids(self) -> list[int]:
        """The worker processes that are up."""
        return self._engine.pids()

    def phase(self) -> str:
        """Where it is in its life, and on which workers, in words."""
        phase = "closed" if self._closed else "not started" if self._engine.feed is None else "running"
        return f"workers={self._settings.workers!r}, {phase}"

    def stats(self) -> Stats:
        feed = self._engine.feed
        return self._meter.stats() if feed is None else self._meter.stats(feed.usage())

    def close(self) -> None:
        """Ends the workers and frees the memory, but for batches that are still held. May be called twice.

        From any thread, and from a signal's handler: whoever waits for a batch gets a ClosedError.
        """
        self._closed = True  # from now on nobody begins anything
        self._agenda.close()
        if self._user is not None and self._engine.is_ours and not self._leaves():
            return
        self._end()

    def check_usable(self) -> None:
        if self._closed:
            raise ClosedError(f"this {self._name} was closed: make a new one")
        self._engine.check_ours()

    def __getstate__(self) -> dict[str, Any]:
        if self._engine.feed is not None or self._closed:
            raise TypeError(f"a {self._name} that has been started cannot be pickled: pickle it before its first use")
        return vars(self)

    def _in_turn(self, work: Callable[[], T]) -> T:
        """Does that while nobody else uses the engine; if it was closed meanwhile, ends all."""
        me, is_mine = get_ident(), False
        try:
            if self._user is None:
                self._user, is_mine = me, True  # at once with the line before: no call in between
            self.check_usable()  # last, since it may have been closed just before
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
            if self._closed:
                if self._left is not None:
                    self._left.ring()
                self._end()

    def _leaves(self) -> bool:
        """It was closed: has whoever uses the engine leave it. False if that can't be waited for: they end all then."""
        left = self._left = self._left or Bell()
        deadline = monotonic() + _LEAVE_S
        while self._user is not None and monotonic() < deadline:
            feed = self._engine.feed
            if feed is not None:
                feed.interrupt()
            if self._user == get_ident() or (feed is not None and feed.is_moving_here()):
                return False  # it is what we have interrupted, or waits for us
            left.wait(_LOOK_AGAIN_S)
        return self._user is None

    def _find_length(self) -> None:
        if not self._agenda.is_counted:
            self._agenda.set_length(self._started().length())

    def _warm_up(self, seconds: float) -> None:
        self._find_length()
        self._settle()
        self._seek(seconds)

    def _offer(self) -> Delivery | None:
        agenda = self._agenda
        if not agenda.is_counted:
            self._find_length()
        if self.hand.held is not None or self._failed is not None:
            self._settle()
        self._meter.begin()
        while not agenda.at_end():
            delivery = self._next()
            if delivery.ended:
                self.hand.held, self._in_step = None, False
                agenda.raise_error()
                return None
            if delivery.skipped or delivery.error is not None:
                self._note_failures()
            if delivery.samples:
                return delivery
            self._advance(delivery)  # all were left out
        return None

    def _next(self) -> Delivery:
        """What comes after the cursor, wherever the engine was; the same again until the cursor has moved on."""
        feed = self._engine.feed
        if not self._in_step or feed is None or not feed.is_sound:
            feed = self._seek()
        delivery = feed.take()
        if delivery is None:
            self._in_step = False
            self.check_usable()
            raise BugError("the engine was told to stop, though nobody has closed it")
        if not delivery.is_noted:
            self._note(delivery)
            delivery.is_noted = True
        return delivery

    def _note(self, delivery: Delivery) -> None:
        if delivery.made is not None:
            if delivery.made.notes:
                self._log(delivery.made.notes)
            self._meter.delivered(delivery.made, delivery.worker, delivery.waited, delivery.moving)
        if delivery.samples and delivery.error is None:
            self._meter.handed(delivery.samples)

    def _offer_next_of(self, unit: OpenUnit, held: Delivery, nth: int) -> Delivery:
        """The next batch of a unit that has many, which is at hand already: most batches of files come this way."""
        bridge = self._settings.bridge
        try:
            if bridge is None:
                data = unit.make(nth)
            else:
                self._in_step = False  # whoever interrupts it may leave something in the memory of other batches
                batch, began = unit.make(nth), perf_counter_ns()
                data = landed(bridge(batch))
                self._meter.moved(perf_counter_ns() - began)
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
        self._meter.handed(unit.sizes[nth])
        held.data, held.is_taken, held.nth, self._in_step = data, False, nth, True  # at once
        return held

    def _seek(self, warm_up: float = 0.0) -> Feed:
        self._in_step, self.hand.held = False, None
        feed = self._started()
        self._agenda.seek()
        with put_off():
            feed.seek(self._agenda, warm_up)
            self._in_step = True
        return feed

    def _settle(self) -> None:
        """What the consumer has by now counts as taken; and what failed, since it goes on after that."""
        held = self.hand.held
        if self._failed is not None:
            self._advance(self._failed)
        elif held is not None and held.is_taken:
            self._advance(held)

    def _advance(self, delivery: Delivery) -> None:
        agenda, unit = self._agenda, delivery.unit
        after, in_step = agenda.after(delivery), self._in_step
        if unit is not None and delivery.nth + 1 < len(unit.sizes):
            in_step = False  # the others of it are nobody's any more
        agenda.cursor, self.hand.held, self._failed, self._in_step = after, None, None, in_step  # at once
        agenda.forget(delivery)

    def _note_failures(self) -> None:
        """Takes note of what was left out of a batch, and raises the error that comes in its place."""
        agenda, delivery = self._agenda, self.hand.held
        assert delivery is not None
        error = delivery.error and ordinary(delivery.error)
        if delivery.skipped:
            batch, count = delivery.batch, len(delivery.skipped)
            try:
                what, of = agenda.what, agenda.all_of(batch)
                self._failures.note(delivery.skipped, batch, of, agenda.left_out(), what)
            except Exception as too_many:
                if is_interrupt(too_many):
                    raise
                error, count = too_many, 0
                if delivery.otherwise is not None:
                    delivery.after, self._in_step = delivery.otherwise, False
            self._meter.skipped(len(delivery.skipped))
            cursor = agenda.leave_out(count)
            agenda.cursor, delivery.skipped = cursor, ()
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

    def _started(self) -> Feed:
        feed = self._engine.started(self.check_usable)
        self.check_usable()  # it may have been closed meanwhile, by who found no engine to interrupt
        return feed

    def _end(self) -> None:
        try:
            self._engine.end()
        finally:
            held = self.hand.held
            if held is not None and held.is_taken:
                self._advance(held)
            self.hand.held = None  # which may hold memory that other batches are cut of
