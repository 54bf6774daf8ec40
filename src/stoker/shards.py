"""Which shard this process is, found out from its surroundings."""

from __future__ import annotations

import os
import sys
from typing import Any

_REMEDY = "write shard=(index, count) with 0 <= index < count, or shard='auto'"


def shard_of(shard: Any) -> tuple[int, int]:
    """What ``Loader(shard=...)`` may be given, as (index, count)."""
    if shard is None:
        return 0, 1
    if isinstance(shard, str):
        if shard != "auto":
            raise ValueError(f"shard={shard!r}: {_REMEDY}")
        return _found()
    return shard  # type: ignore[no-any-return]  # the plan checks it


def _found() -> tuple[int, int]:
    """torch.distributed if it runs, the environment of torchrun and the like, JAX if it runs, or alone."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    if "RANK" in os.environ and "WORLD_SIZE" in os.environ:
        return _from_environment(os.environ["RANK"], os.environ["WORLD_SIZE"])
    jax = sys.modules.get("jax")
    if jax is not None and jax.process_count() > 1:
        return jax.process_index(), jax.process_count()
    return 0, 1


def _from_environment(rank: str, world_size: str) -> tuple[int, int]:
    try:
        return int(rank), int(world_size)
    except ValueError:
        raise ValueError(
            f"shard='auto' found RANK={rank!r} and WORLD_SIZE={world_size!r}, which are not numbers: {_REMEDY}"
        ) from None
