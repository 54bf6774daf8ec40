"""A session over packed rows of a dataset with an index, put together of its parts."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

from stoker.agenda.packed import PackedAgenda
from stoker.collation import Pack
from stoker.observe import Failures, Reference, Setup
from stoker.plan import Plan
from stoker.session import Session
from stoker.settings import Settings
from stoker.sources import IndexedSource
from stoker.sources.packed_rows import PackSamples
from stoker.stores import Keeping
from stoker.workers.worker import Job


def packed_session(
    source: IndexedSource,
    batches: Plan,
    pack: Pack,
    init: Callable[[], object] | None,
    keeping: Keeping,
    settings: Settings,
) -> Session:
    """``batches``: batch size (in rows), shuffle, seed, ``drop_last`` and shard. ``keeping``: where samples stay."""
    source = dataclasses.replace(source, unit="window")
    agenda, policy = PackedAgenda(batches, pack, source), settings.policy
    ahead = source.dataset, settings.ahead, settings.usually_ahead
    reference = None
    if policy.file is not None:
        reference = Reference(source.reference(), keeping.seed, source.secrets())
    work = PackSamples(pack, batches.batch_size)
    return Session(
        "loader",
        agenda,
        job=Job(
            source,
            agenda.plan,
            None,
            policy.leaves_out,
            keeping.opener(*ahead),
            init,
            replaces=policy.replaces,
            retry=settings.retry,
            pack=work,
        ),
        settings=settings,
        failures=Failures(policy, reference),
        reopen_store=functools.partial(keeping.reopener, *ahead),
        setup=Setup(has_cache=keeping.cache is not None),
    )
