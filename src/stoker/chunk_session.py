"""A session over chunk files, put together of its parts."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from stoker.agenda.chunks import ChunkAgenda
from stoker.bridges import arrow_first
from stoker.collation import Pack
from stoker.observe import Failures, Setup
from stoker.plan import Plan
from stoker.session import Session
from stoker.settings import Settings
from stoker.sources import ItemSource
from stoker.sources.chunks import Chunks, ReadGroup
from stoker.sources.files.open_files import OpenFiles
from stoker.sources.packed_rows import PackSamples
from stoker.surveys import Surveys
from stoker.workers.worker import Job

_MORE_OPEN = 2  # files that a worker keeps open, beside those of a group: the next one may have others


def chunk_session(
    chunks: Chunks,
    plan: Plan,
    collate: Callable[[list[Any]], Any] | None,
    init: Callable[[], object] | None,
    settings: Settings,
    pack: Pack | None,
) -> Session:
    """``plan``: batch size, shuffle, seed, ``drop_last`` and shard; its length plays no part."""
    leave_out = settings.policy.leaves_out
    # Batches that Arrow gets are made of a group as a whole; what else there is to do, with each of them.
    to_arrow, bridge = arrow_first(settings.bridge) if pack is None else (None, settings.bridge)
    cuts_columns = collate is None and plan.batch_size is not None
    selection = dataclasses.replace(chunks.selection, keeps_nulls=to_arrow is not None and cuts_columns)
    files = OpenFiles(chunks.interleave + _MORE_OPEN)
    cutting = chunks.across_chunks, plan.drop_last, leave_out, selection
    packing = None if pack is None else PackSamples(pack, plan.batch_size)
    work = ReadGroup(chunks.read, plan.batch_size, collate, *cutting, files, packing)
    surveys = Surveys(chunks, plan, settings.workers, init, settings.retry, leave_out=leave_out)
    ahead = not settings.workers.traits.is_inline
    agenda = ChunkAgenda(chunks, plan, collate, surveys, files, to_arrow, pack, ahead=ahead)
    return Session(
        "loader",
        agenda,
        job=Job(ItemSource(work), agenda.plan, None, skip_errors=False, init=init, retry=settings.retry),
        settings=dataclasses.replace(settings, bridge=bridge),
        failures=Failures(settings.policy),
        setup=Setup(making="reading files" if collate is None else "reading files and collate="),
    )
