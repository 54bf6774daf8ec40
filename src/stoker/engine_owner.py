"""The owner of an engine: starts it when it is first needed, and ends it."""

from __future__ import annotations

import dataclasses
import os
import weakref
from collections.abc import Callable
from typing import Any

from stoker.assembly import assembled
from stoker.engine import Delivery, Usage
from stoker.errors import ClosedError
from stoker.feed import Feed
from stoker.interrupts import Hand, put_off
from stoker.memory import limits_explained
from stoker.plan import Numbering, Plan
from stoker.settings import Settings
from stoker.stores import OpenStore
from stoker.workers import Death, Site, Snapshot
from stoker.workers.imports import check_not_importing
from stoker.workers.worker import Job


class EngineOwner:
    """Knows in which process the engine was started, and what its workers got.

    Args:
        name: What the user knows it as, for messages.
        job: What a worker does.
        settings: How.
        hand: Where each batch lies until the consumer has it.
        new_store: Makes a file for the workers' store, if they have one.
        reopen_store: Gives what opens that store now that the dataset has changed, or raises.
        last_look: Is told what is in use, and which processes workers are, before these end.
        on_death: Is told of each worker that has died.
    """

    def __init__(
        self,
        name: str,
        job: Job,
        settings: Settings,
        hand: Hand[Delivery],
        new_store: Callable[[], int | None] | None,
        reopen_store: Callable[[], OpenStore | None] | None,
        last_look: Callable[[Usage, list[int]], None],
        on_death: Callable[[Death], object] | None = None,
    ) -> None:
        self.feed: Feed | None = None
        self.has_started = False
        self.is_closed = False  # by the user, though it may still have to be ended
        self.is_stale = False  # what workers got, as far as we know
        self._name, self._settings, self._hand = name, settings, hand
        self._new_store, self._reopen_store = new_store, reopen_store
        self._last_look, self._on_death = last_look, on_death
        self._process = 0  # in which it was started
        self._finalizer: weakref.finalize[[Feed, Site, int], EngineOwner] | None = None
        self._snapshot: Snapshot | None = None  # of the job when the workers that are there got it
        self._job: Job | None = job
        self._site: Site | None = settings.workers.prepare(job)

    @property
    def is_ours(self) -> bool:
        """Whether it was started in this process, if at all."""
        return self._process in (0, os.getpid())

    @property
    def phase(self) -> str:
        """Where it is in its life, in words."""
        return "closed" if self.is_closed else "not started" if self.feed is None else "running"

    def check_usable(self) -> None:
        if self.is_closed:
            raise ClosedError(f"this {self._name} was closed: make a new one")
        if self.feed is not None and self._process != os.getpid():
            raise ClosedError(
                f"this {self._name} was started in process {self._process} and is used in its fork {os.getpid()}: "
                f"make a {self._name} in each process, or fork before its first use"
            )

    def pids(self) -> list[int]:
        """The worker processes that are up."""
        return [] if self.feed is None or self._process != os.getpid() else self.feed.pids()

    def set_plan(self, plan: Plan | Numbering) -> None:
        """The next workers work by it."""
        assert self._job is not None
        assert self._site is not None
        self._job = dataclasses.replace(self._job, plan=plan)
        self._site.renew(self._job)

    def has_changed(self) -> bool:
        """Whether there are workers, and the dataset is not what they got."""
        if self.feed is None:
            return False
        assert self._job is not None
        return self.is_stale or (self._snapshot is not None and self._snapshot.differs(self._job))

    def renew(self) -> None:
        """Ends the workers: the next ones get the dataset as it is now."""
        assert self._job is not None
        assert self._site is not None
        if self._reopen_store is not None:
            self._job = dataclasses.replace(self._job, open_store=self._reopen_store())
        self._site.renew(self._job)
        self.stop()

    def started(self) -> Feed:
        """The engine, halted. Started when first needed, and anew if it was interrupted in the middle of something."""
        if self.feed is not None and not self.feed.halt():
            self.stop()
        if self.feed is None:
            self.check_usable()
            if self._settings.workers.traits.imports_modules:
                check_not_importing(self._name)
            assert self._site is not None
            assert self._job is not None
            with limits_explained(), put_off():
                self._site.pack()
            with put_off():  # until somebody owns all that is started
                self._process, self.has_started = os.getpid(), True
                driver = assembled(self._settings, self._site, self._new_store, self._on_death)
                self.feed = Feed(driver, self._settings.bridge, self._settings.on_device, self._hand)
                self._finalizer = weakref.finalize(self, _close_in, self.feed, self._site, self._process)
                self.is_stale = True  # until it is known what the workers got
                self._snapshot = self._site.snapshot() if self._job.may_change else None  # while the workers start
                self.is_stale = False
        feed = self.feed
        self.check_usable()  # it may have been closed meanwhile, by who found no engine to interrupt
        return feed

    def stop(self) -> None:
        """Ends the engine. Whoever is interrupted in it may do it again; the finalizer will."""
        feed = self.feed
        if feed is None or self._process != os.getpid():
            return
        self._last_look(feed.usage(), feed.pids())
        if feed.close():
            self.feed = None
            if self._finalizer is not None:  # else Ctrl-C came just before
                self._finalizer.detach()

    def end(self) -> None:
        """For good."""
        try:
            self.stop()
        finally:
            site, self._job, self._site = self._site, None, None
            if site is not None:
                site.free()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_site"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        assert self._job is not None
        self._site = self._settings.workers.prepare(self._job)


def _close_in(feed: Feed, site: Site, process: int) -> None:
    """A forked child has copies of our descriptors, but the workers are its parent's."""
    if os.getpid() == process:
        try:
            feed.close()
        finally:
            site.free()
