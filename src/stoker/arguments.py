"""Checks of a loader's arguments: each gives the value back, or says what to write instead."""

from __future__ import annotations

import math
from typing import Any

from stoker.plan import Plan
from stoker.sources.chunks import Chunks


def checked_count(name: str, value: Any, of_what: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name}={value!r}: write a number of {of_what}, 1 or more")
    return value


def checked_timeout(timeout: Any) -> float | None:
    if timeout is None:
        return None
    if not isinstance(timeout, int | float) or isinstance(timeout, bool) or not 0 < timeout < float("inf"):
        raise ValueError(f"timeout={timeout!r}: write a number of seconds above 0, or None for any time")
    return float(timeout)


def checked_seconds(seconds: Any) -> float:
    if seconds is None:
        return math.inf
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not seconds >= 0:
        raise ValueError(f"warm_up({seconds!r}): write a number of seconds, or None for as long as it takes")
    return float(seconds)


def checked_flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{name}={value!r}: write True or False")
    return value


def checked_collate(collate: Any) -> Any:
    if collate is not None and not callable(collate):
        raise TypeError(f"collate={collate!r}: write a function that takes a list of samples, or leave it out")
    return collate


def check_chunked(chunks: Chunks, plan: Plan, cache: Any, rotation: Any) -> None:
    """What a loader of chunk files cannot do."""
    if cache is not None or rotation is not None:
        name = "cache" if cache is not None else "rotation"
        raise ValueError(f"{name}= needs samples that can be asked for by number, which those of Chunks cannot")
    if not isinstance(plan.shuffle, bool):
        raise ValueError(
            f"shuffle={plan.shuffle!r} of Chunks: write True, and Chunks(..., interleave=n) for how many files mix"
        )
    if plan.shard[1] > 1 and not chunks.across_chunks:
        raise ValueError(
            f"shard={plan.shard!r} of Chunks(..., across_chunks=False): shards would have different numbers of "
            f"batches; write across_chunks=True"
        )
