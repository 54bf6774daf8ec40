"""Which order a loader has: from what the user has passed as ``order=``."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, Literal, TypeAlias

from stoker.agenda import AskedOrder
from stoker.observe import ErrorPolicy
from stoker.plan import BucketOrder, Buckets, Given, Ordering, Plan, Weighted
from stoker.sources import IndexedSource

OwnOrder: TypeAlias = Ordering | Sequence[int] | Callable[[int], Iterable[int]] | Iterable[int] | Any  # arrays, tensors

Shard: TypeAlias = tuple[int, int] | Literal["auto"] | None

_WHAT = (
    "pass stoker.Weighted(...), stoker.Buckets(...), an array of indices, a function that gets an epoch's number and "
    "returns its indices, or a torch sampler"
)


def with_order(plan: Plan, order: Any, source: IndexedSource | None, policy: ErrorPolicy) -> Plan:
    """The plan with that order, checked as far as that is possible before the start.

    Args:
        plan: Without one, unless the dataset is a Mix.
        order: What the user has passed.
        source: The dataset; None: chunk files.
        policy: What becomes of samples that fail.

    Raises:
        TypeError: It is no order.
        ValueError: It does not fit the dataset, or something else that the user has passed.
    """
    if order is None:
        return plan
    if policy.replaces:
        raise ValueError(
            'on_error="replace" with order=: a sample that fails is replaced by any other of the dataset, also by one '
            'that the order leaves out. Pass on_error="skip" or "quarantine"'
        )
    if source is None:
        raise ValueError("order= needs a dataset with an index, which Chunks has not: pass shuffle=True")
    if plan.order is not None:
        raise ValueError("order= with a Mix, whose weights say in which order samples come: leave order out")
    if plan.times > 1:
        raise ValueError(
            "order= with rotation=, which says itself how often each sample is used: leave one of them out (an array "
            "of indices may hold each several times)"
        )
    if isinstance(order, Buckets):
        plan, order = _bucketed(plan, order)
    found = _ordering(order)
    if isinstance(found, Weighted) and plan.shuffle is not False:
        raise ValueError(
            f"shuffle={plan.shuffle!r} with order=Weighted(...), which is random already: leave shuffle out"
        )
    plan = dataclasses.replace(plan, order=found)
    if not source.is_factory and not isinstance(found, AskedOrder):
        plan.positions_in(0)
    return plan


def _ordering(order: Any) -> Ordering:
    if isinstance(order, Weighted | BucketOrder):
        return order
    if isinstance(order, type | str | bytes | Mapping | Set):
        raise TypeError(f"order={_shown(order)}: {_WHAT}")
    if isinstance(order, Iterator):
        raise TypeError(f"order={_shown(order)}, an iterator, gives its indices for one epoch only: {_WHAT}")
    if hasattr(order, "__array__") or isinstance(order, Sequence):
        return Given(order)
    if hasattr(order, "batch_size") and hasattr(order, "drop_last"):
        raise TypeError(
            f"order={_shown(order)}, which gives whole batches: pass the sampler of its samples, and batch_size and "
            f"drop_last to the loader; or pass it as batch_sampler= to stoker.torch.DataLoader"
        )
    if isinstance(order, Iterable):
        return AskedOrder.of_sampler(order)
    if callable(order):
        return AskedOrder(order, getattr(order, "__qualname__", None) or type(order).__qualname__)
    raise TypeError(f"order={_shown(order)}: {_WHAT}")


def _bucketed(plan: Plan, buckets: Buckets) -> tuple[Plan, Ordering]:
    if plan.batch_size is None:
        raise ValueError("order=Buckets(...) with batch_size=None, which is for single samples: leave batch_size out")
    if not isinstance(plan.shuffle, bool):
        raise ValueError(f"shuffle={plan.shuffle!r} with order=Buckets(...): pass True or False")
    order = buckets.ordering(plan.batch_size)
    return plan if buckets.max_tokens is None else dataclasses.replace(plan, batch_size=1), order


def shard_beside(order: Any, shard: Shard) -> Shard:
    """The shard of a loader with that order, which may be a sampler that takes its share itself.

    Raises:
        ValueError: Both the loader and the sampler would take a share.
    """
    replicas = getattr(order, "num_replicas", 1)
    if not isinstance(replicas, int) or replicas == 1:
        return shard
    if shard not in (None, (0, 1)):
        raise ValueError(
            f"shard={shard!r} with order={_shown(order)}, which takes one share of {replicas} itself: leave shard out, "
            f"or pass an order of all samples"
        )
    return 0, 1


def _shown(order: Any) -> str:
    """Without what is in it, which may be large."""
    return order.__qualname__ if isinstance(order, type) else f"<{type(order).__qualname__}>"
