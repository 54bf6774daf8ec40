"""A session over a dataset with an index, put together of its parts."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from stoker.agenda import IndexedAgenda
from stoker.collation import Pack
from stoker.observe import Failures, Reference, Setup
from stoker.plan import Plan
from stoker.session import Session
from stoker.settings import Settings
from stoker.sources import IndexedSource
from stoker.stores import Keeping
from stoker.workers.worker import Job


def indexed_session(
    source: IndexedSource,
    plan: Plan,
    collate: Callable[[list[Any]], Any] | None,
    init: Callable[[], object] | None,
    keeping: Keeping,
    settings: Settings,
    pack: Pack | None = None,
) -> Session:
    """``keeping``: where samples are kept, if anywhere."""
    if pack is not None:
        from stoker.packed_session import packed_session  # when used: with what cuts batches, also those of files

        return packed_session(source, plan, pack, init, keeping, settings)
    dataset, policy, ahead = source.dataset, settings.policy, (settings.ahead, settings.usually_ahead)
    reference = None
    if policy.file is not None:
        reference = Reference(source.reference(), keeping.seed, source.secrets())
    agenda, store = IndexedAgenda(plan, source, settings.longest_run), keeping.opener(dataset, *ahead)
    return Session(
        "loader",
        agenda,
        job=Job(
            source, agenda.plan, collate, policy.leaves_out, store, init, replaces=policy.replaces, retry=settings.retry
        ),
        settings=settings,
        failures=Failures(policy, reference),
        new_store=keeping.new_file,
        reopen_store=functools.partial(keeping.reopener, dataset, *ahead),
        setup=Setup(has_cache=keeping.cache is not None),
    )
