"""A session: one consumer and the engine that works for it, from the first batch it asks for to the end."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from stoker.arguments import checked_count, checked_flag, checked_timeout
from stoker.bridges import bridge, goes_elsewhere
from stoker.engine import Delivery, Driver, Machine
from stoker.errors import ClosedError
from stoker.feed import Feed
from stoker.memory import Slots, limits_explained
from stoker.observe import ErrorPolicy, Meter, Stats
from stoker.plan import Batch, Cursor, Plan
from stoker.sources import Items
from stoker.workers import Inline, Processes, Site, Skipped, Workers, workers_of
from stoker.workers.failure import ordinary
from stoker.workers.worker import Job

log = logging.getLogger("stoker")

_UNDER_WAY = 2  # batches that a worker may have beside those that are ready: the one it makes, and the next
_RUNS_PER_WORKER = 8  # in an epoch, at least: with fewer, one worker might have much more to do than another


@dataclass(frozen=True)
class Settings:
    """How work is done, whatever it is. ``on_device``: what is made is moved ahead by a thread, so many at a time."""

    workers: Workers
    prefetch: int
    in_order: bool
    timeout: float | None
    max_deaths: int
    policy: ErrorPolicy
    bridge: Callable[[Any], Any] | None
    on_device: int

    @classmethod
    def checked(
        cls,
        *,
        workers: int | Literal["auto"] | Workers,
        prefetch: int,
        in_order: bool,
        timeout: float | None,
        max_deaths: int,
        policy: ErrorPolicy,
        to: Any,
        device: Any,
        to_device: Any,
        max_on_device: int,
    ) -> Settings:
        found = workers_of(workers)
        ahead = checked_count("max_on_device", max_on_device, "batches")
        return cls(
            found,
            checked_count("prefetch", prefetch, "batches per worker"),
            checked_flag("in_order", in_order),
            checked_timeout(timeout),
            checked_count("max_deaths", max_deaths, "deaths over one batch"),
            policy,
            bridge(to, device, to_device),
            ahead if goes_elsewhere(device, to_device) and not isinstance(found, Inline) else 0,
        )

    @property
    def ahead(self) -> int:
        """Batches that may be under way, or ready, and not yet taken."""
        return self.workers.n * (self.prefetch + _UNDER_WAY) + self.on_device


class TakesNote(Protocol):
    """Who is told of samples that were left out of a batch, and may say that they are too many."""

    def note(self, skipped: tuple[Skipped, ...], batch: Batch, plan: Plan, before: int) -> None: ...


class Session:
    """Starts the engine when it is first needed, and anew if it was interrupted; knows what the consumer has taken.

    Args:
        name: What it is to the user, for messages.
        plan: What there is to do.
        length_known: Else the plan's length is asked of a worker.
        job: What a worker does.
        settings: How.
        failures: Takes note of samples that are left out.
        new_store: Makes a file for the workers' store, if they have one.
        items: Where the plan's samples come from, if not from a dataset of the workers'.
    """

    def __init__(
        self,
        name: str,
        plan: Plan,
        *,
        length_known: bool,
        job: Job,
        settings: Settings,
        failures: TakesNote,
        new_store: Callable[[], int | None] | None = None,
        items: Items | None = None,
    ) -> None:
        self.cursor = Cursor()
        self._name = name
        self._plan, self._length_known = plan, length_known
        self._settings, self._failures, self._new_store, self._items = settings, failures, new_store, items
        self._notes: set[str] = set()
        self.failed: Batch | None = None  # an error was raised in its place; passed over if the consumer goes on
        self._in_step = False  # the engine will deliver what the cursor comes to next
        self._meter = Meter(0 if isinstance(settings.workers, Inline) else settings.workers.n)
        self._feed: Feed | None = None
        self._finalizer: weakref.finalize[[Feed, Site, int], Session] | None = None
        self._owner = 0
        self._closed = False
        self._job: Job | None = job
        self._site: Site | None = settings.workers.prepare(job)

    @property
    def plan(self) -> Plan:
        """With the dataset's length, which a worker may have to be asked for."""
        if not self._length_known:
            self._plan = dataclasses.replace(self._plan, length=self._started().length())
            self._length_known = True
        return self._plan

    def take(self) -> Delivery | None:
        """The next batch of the running epoch; None at its end."""
        self.check_usable()
        plan = self.plan
        self._pass_over_failed(plan)
        self._meter.begin()
        while not self.cursor.at_end(plan):
            delivery = self._next(plan)
            if delivery.ended:
                return None
            if delivery.skipped or delivery.error is not None:
                self._note_failures(delivery, plan)
            self._advance(delivery.batch, plan)
            self._in_step = True
            if delivery.made is not None and delivery.made.samples:  # else all were left out
                return delivery
        return None

    def jump(self, cursor: Cursor, items: Items | None = None) -> None:
        """From now on what that cursor comes to next, out of other items if there are any."""
        self.check_usable()
        self.cursor, self._items = cursor, items or self._items
        self.failed = None
        self._in_step = False

    def warm_up(self, seconds: float) -> None:
        """Lets the workers get as far ahead as they may, for so long at most."""
        self.check_usable()
        plan = self.plan
        self._pass_over_failed(plan)
        self._seek(plan, seconds)

    def pids(self) -> list[int]:
        """The worker processes that are up."""
        return [] if self._feed is None or self._owner != os.getpid() else self._feed.pids()

    def stats(self) -> Stats:
        return self._meter.stats()

    def close(self) -> None:
        """Ends the workers and frees the memory, but for batches that are still held. May be called twice."""
        self._closed = True
        try:
            self._stop()
        finally:
            if self._site is not None:
                self._site.free()
            self._job = self._site = None

    def check_usable(self) -> None:
        if self._closed:
            raise ClosedError(f"this {self._name} was closed: make a new one")
        if self._feed is not None and self._owner != os.getpid():
            raise ClosedError(
                f"this {self._name} was started in process {self._owner} and is used in its fork {os.getpid()}: "
                f"make a {self._name} in each process, or fork before its first use"
            )

    def __getstate__(self) -> dict[str, Any]:
        if self._feed is not None or self._closed:
            raise TypeError(f"a {self._name} that has been started cannot be pickled: pickle it before its first use")
        return {name: value for name, value in vars(self).items() if name != "_site"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        assert self._job is not None
        self._site = self._settings.workers.prepare(self._job)

    def _next(self, plan: Plan) -> Delivery:
        """What comes after the cursor, wherever the engine was. Out of step until the cursor has moved on, too."""
        if not self._in_step:
            self._seek(plan)
        assert self._feed is not None
        self._in_step = False  # Ctrl-C may come at any point from here on
        delivery = self._feed.take()
        if delivery.made is not None:
            if delivery.made.notes:
                self._log(delivery.made.notes)
            self._meter.delivered(delivery.made, delivery.worker, delivery.idle, delivery.waited, delivery.moving)
        return delivery

    def _seek(self, plan: Plan, warm_up: float = 0.0) -> None:
        self._in_step = False
        feed = self._started()
        if self._items is not None:
            self._items.seek(self.cursor.position, self.cursor.taken)
            feed.follow(self._items, plan, warm_up)
        else:
            feed.seek(self.cursor.onwards(plan), plan, self._longest_run(plan), warm_up)
        self._in_step = True

    def _pass_over_failed(self, plan: Plan) -> None:
        """The consumer goes on after an error."""
        if self.failed is not None:
            self._advance(self.failed, plan)
            self.failed = None

    def _advance(self, batch: Batch, plan: Plan) -> None:
        self.cursor.deliver(batch, plan)
        if self._items is not None:
            self._items.forget(batch.round)

    def _note_failures(self, delivery: Delivery, plan: Plan) -> None:
        """Takes note of what was left out of a batch, and raises the error that comes in its place."""
        try:
            if delivery.skipped:
                self._meter.skipped(len(delivery.skipped))
                self._failures.note(delivery.skipped, delivery.batch, plan, self.cursor.skipped)
                self.cursor.skipped += len(delivery.skipped)
            if delivery.error is not None:
                raise ordinary(delivery.error)
        except Exception:
            self.failed = delivery.batch
            self._in_step = True
            raise

    def _log(self, notes: tuple[str, ...]) -> None:
        """Each once, however many workers say so."""
        for note in notes:
            if note not in self._notes:
                self._notes.add(note)
                log.warning("%s", note)

    def _started(self) -> Feed:
        """The engine, halted. Started when first needed, and anew if it was interrupted in the middle of something."""
        if self._feed is not None and not self._feed.halt():
            self._stop()
        if self._feed is None:
            self.check_usable()
            assert self._site is not None
            self._owner = os.getpid()  # first: Ctrl-C may come between two lines
            self._feed = Feed(self._new_driver(self._site), self._settings.bridge, self._settings.on_device)
            self._job = None  # from now on the dataset is the workers' own
            self._in_step = False
            self._finalizer = weakref.finalize(self, _close_in, self._feed, self._site, self._owner)
        return self._feed

    def _new_driver(self, site: Site) -> Driver:
        """A driver with its memory and workers, or, if anything fails on the way, nothing of it."""
        settings = self._settings
        is_inline, count = isinstance(settings.workers, Inline), settings.workers.n
        machine = Machine(
            workers=count,
            window=1 if is_inline else count * settings.prefetch,
            depth=min(2, settings.prefetch),
            in_order=settings.in_order,
            deaths_allowed=settings.max_deaths,
            leave_out=settings.policy.leaves_out,
        )
        with limits_explained(), contextlib.ExitStack() as undo:
            slots = Slots.create()
            undo.callback(slots.close)
            store = None if self._new_store is None else self._new_store()
            if store is not None:
                undo.callback(os.close, store)
            backend = site.build(slots, slots.fd if store is None else store)
            undo.callback(backend.close)
            driver = Driver(
                machine,
                backend,
                slots,
                store=store,
                timeout=None if is_inline else settings.timeout,
                deaths_allowed=settings.max_deaths,
                leave_out=settings.policy.leaves_out,
            )
            undo.pop_all()
            return driver

    def _stop(self) -> None:
        if self._feed is not None and self._owner == os.getpid():
            feed, self._feed = self._feed, None
            if self._finalizer is not None:  # else Ctrl-C came just before
                self._finalizer.detach()
            feed.close()

    def _longest_run(self, plan: Plan) -> int:
        """Batches that a worker may make in one go: only where order keeps a slow one from being overtaken anyway."""
        workers = self._settings.workers
        if not isinstance(workers, Processes) or not self._settings.in_order or plan.times > 1:
            return 1  # rotating samples must not get too far apart
        return max(1, plan.rounds // (_RUNS_PER_WORKER * workers.n))


def _close_in(feed: Feed, site: Site, owner: int) -> None:
    """A forked child has copies of our descriptors, but the workers are its parent's."""
    if os.getpid() == owner:
        feed.close()
        site.free()
