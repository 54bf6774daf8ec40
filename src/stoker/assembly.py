"""An engine, put together of its parts: machine, memory, workers, driver."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

from stoker.engine import Driver, Machine, Pacing
from stoker.memory import Slots, limits_explained
from stoker.plan import MOST_REPLACEMENTS
from stoker.settings import Settings
from stoker.shadows import shadows_explained
from stoker.workers import Death, Site, SlotTransport

MOST_AT_A_WORKER = 50  # requests: they wait in a pipe, which may be as small as a page, and is never written to in vain


def machine_of(settings: Settings) -> Machine:
    """A fresh machine, with as many workers and as much credit as the settings say."""
    traits, count = settings.workers.traits, settings.workers.count
    return Machine(
        workers=count,
        window=1 if traits.is_inline else count * settings.prefetch,
        depth=min(settings.prefetch, MOST_AT_A_WORKER),  # all at once: a busy consumer sends no more
        in_order=settings.in_order,
        deaths_allowed=settings.max_deaths,
        leave_out=settings.policy.leaves_out,
        replacements=MOST_REPLACEMENTS if settings.policy.replaces else 0,
        announced=traits.is_announced,
        share=settings.prefetch if traits.is_elastic else None,
    )


def assembled(
    settings: Settings,
    site: Site,
    new_store: Callable[[], int | None] | None,
    on_death: Callable[[Death], object] | None,
) -> Driver:
    """A driver with its memory and workers, or, if anything fails on the way, nothing of it.

    ``new_store``: makes a file for the workers' store, if they have one. ``on_death``: is told of each worker that has
    died.
    """
    traits, machine = settings.workers.traits, machine_of(settings)
    with limits_explained(), shadows_explained(), contextlib.ExitStack() as undo:
        transport = SlotTransport(Slots.create(in_process=traits.is_inline or traits.shares_interpreter))
        undo.callback(transport.close)
        store = None if new_store is None else new_store()
        if store is not None:
            undo.callback(os.close, store)
        backend = site.build(transport, transport.slots.fd if store is None else store)
        undo.callback(backend.close)
        driver = Driver(
            machine,
            backend,
            transport,
            store=store,
            timeout=None if traits.is_inline else settings.timeout,
            deaths_allowed=settings.max_deaths,
            leave_out=settings.policy.leaves_out and not settings.policy.replaces,
            pacing=Pacing(traits.run_seconds, traits.run_bytes),
            on_death=on_death,
        )
        undo.pop_all()
        return driver
