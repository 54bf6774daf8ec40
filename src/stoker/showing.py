"""Showing: what the user can see of a session: figures, a live page, a trace and a bar."""

from __future__ import annotations

import functools
import os
from typing import Any

from stoker.agenda import Agenda
from stoker.display import Display
from stoker.engine_owner import EngineOwner
from stoker.observe import Meter, Trace, Traced
from stoker.observe.page import Moment, Observed
from stoker.settings import Settings


class Showing:
    """Shows one session, for as long as that lives. What was ``observed`` can be told after that, too.

    Args:
        title: What it is to the user.
        agenda: What there is to do.
        engine: That does it.
        meter: That measures it.
        settings: How, and what of it the user wants to see.
    """

    def __init__(self, title: str, agenda: Agenda, engine: EngineOwner, meter: Meter, settings: Settings) -> None:
        self.title = title
        self.display = Display(meter, progress=settings.progress, watch=settings.watch or False)
        self._agenda, self._engine, self._meter, self._settings = agenda, engine, meter, settings
        self._observed: Observed | None = None

    @property
    def observed(self) -> Observed:
        """What can be told of the session, also once it is closed or gone."""
        if self._observed is None:
            self._observed = Observed(self.title, repr(self._settings.workers), self._meter, self)
        return self._observed

    def moment(self) -> Moment:
        """From any thread."""
        feed, progress = self._engine.feed, self._agenda.progress
        usage = None if feed is None else feed.usage()
        try:
            pids = tuple(self._engine.pids())
        except (LookupError, ValueError, RuntimeError):  # workers are just being started or ended by another thread
            pids = ()
        return Moment(self._engine.phase, progress.epoch, self._agenda.shard, pids, usage)

    def show_progress(self, name: str, iterator: object) -> None:
        """If the user wants to see it: a bar, from here to the end of the epoch or of the iterator's life."""
        self.display.end_bar()
        if self._settings.progress and self._agenda.shard[0] == 0:
            done = self._agenda.progress.done()
            total = functools.partial(_total, self._agenda) if done is not None else None
            self.display.begin(name, iterator, done=done or 0, total=total)

    def watch(self) -> None:
        """Shows it on the live page, if that is wanted, from now until it is closed or gone.

        Raises:
            OSError, ValueError: The page cannot be served there.
        """
        if self._settings.watch is not None and not self._engine.is_closed:
            self.display.show(self.observed)

    @property
    def watch_url(self) -> str | None:
        return self.display.watch_url

    def trace(self, to: str | os.PathLike[str] | Trace) -> Trace:
        """Adds it to a trace, or makes one and writes it."""
        trace = to if isinstance(to, Trace) else Trace(to)
        trace.add(Traced(f"stoker.{self.title}", self._meter, moves_ahead=self._settings.on_device > 0))
        if trace is not to:
            trace.write()
        return trace

    def end(self) -> None:
        """Takes the bar away, and the page if it is the last one on it. May be called twice."""
        self.display.end()

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_observed": None}


def _total(agenda: Agenda) -> int | None:
    """Batches in an epoch, as far as anybody knows by now."""
    try:
        return len(agenda) if agenda.is_counted else None
    except TypeError:  # of items that have no length
        return None
