"""An engine, put together of its parts: machine, memory, workers, driver."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

from stoker.engine import Driver, Machine
from stoker.memory import Slots, limits_explained
from stoker.settings import Settings
from stoker.shadows import shadows_explained
from stoker.workers import Site, SlotTransport


def assembled(settings: Settings, site: Site, new_store: Callable[[], int | None] | None) -> Driver:
    """A driver with its memory and workers, or, if anything fails on the way, nothing of it.

    ``new_store``: makes a file for the workers' store, if they have one.
    """
    is_inline, count = settings.workers.is_inline, settings.workers.n
    machine = Machine(
        workers=count,
        window=1 if is_inline else count * settings.prefetch,
        depth=min(2, settings.prefetch),
        in_order=settings.in_order,
        deaths_allowed=settings.max_deaths,
        leave_out=settings.policy.leaves_out,
    )
    with limits_explained(), shadows_explained(), contextlib.ExitStack() as undo:
        transport = SlotTransport(Slots.create())
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
            timeout=None if is_inline else settings.timeout,
            deaths_allowed=settings.max_deaths,
            leave_out=settings.policy.leaves_out,
        )
        undo.pop_all()
        return driver
