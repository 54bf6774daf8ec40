"""A loader's session: what the user has passed, checked against each other, and the plan made of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from stoker.arguments import (
    check_chunked,
    check_packed,
    check_replacing,
    check_rotation,
    checked_collate,
    checked_init,
    named,
)
from stoker.collation import Pack
from stoker.indexed_session import indexed_session
from stoker.orders import OwnOrder, with_order
from stoker.plan import Plan
from stoker.session import Session
from stoker.settings import Settings
from stoker.sources import IndexedSource, Mix, is_chunks
from stoker.stores import Keeping


def loader_session(
    dataset: Any,
    batches: Plan,
    order: OwnOrder | None,
    collate: Callable[[list[Any]], Any] | None,
    init: Callable[[], object] | None,
    keeping: Keeping,
    settings: Settings,
    pack: Pack | None,
) -> tuple[Session, str]:
    """The session, and what the dataset is called.

    Args:
        dataset: As passed to the loader.
        batches: Batch size, shuffle, seed, ``drop_last``, shard and uses of a sample; no length and no order.
        order: As passed to the loader.
        collate: As passed to the loader.
        init: As passed to the loader.
        keeping: Where samples are kept, if anywhere.
        settings: How it is done.
        pack: As passed to the loader.

    Raises:
        TypeError: Something has the wrong type.
        ValueError: Something has a wrong value, or does not go with the rest.
    """
    policy, rotation = settings.policy, keeping.rotation
    collate, init = checked_collate(collate), checked_init(init)
    check_rotation(rotation, settings.workers)
    check_replacing(policy, "Chunks" if is_chunks(dataset) else "dataset", rotation)
    if is_chunks(dataset):
        from stoker.chunk_session import chunk_session  # when used: files are a quarter of importing stoker

        plan = with_order(batches, order, None, policy)
        check_packed(pack, dataset, plan, collate, rotation)
        check_chunked(dataset, plan, keeping.cache, rotation)
        return chunk_session(dataset, plan, collate, init, settings, pack), named(dataset)
    source = IndexedSource.of(dataset.samples if isinstance(dataset, Mix) else dataset)
    plan = batches if source.is_factory else batches.of_length(len(source.dataset))
    if isinstance(dataset, Mix):
        plan = replace(plan, order=dataset.order(stride=plan.stride, seed=plan.seed))
    plan = with_order(plan, order, source, policy)
    check_packed(pack, source.dataset, plan, collate, rotation)
    session = indexed_session(source, plan, collate, init, keeping, settings, pack)
    # Columns are made a dataset, and it is that which has a name.
    return session, named(dataset if isinstance(dataset, Mix) else source.dataset)
