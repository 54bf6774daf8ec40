"""Which rank of a distributed training a loader is on."""

from __future__ import annotations

from typing import Any

import torch.distributed

from stoker.torch.beginning import samplers_of


def rank_of(loader: Any) -> tuple[int, int]:
    """Its number, and how many ranks there are: by a sampler such as ``DistributedSampler``, or by torch itself."""
    for sampler in samplers_of(loader):
        found = getattr(sampler, "rank", None), getattr(sampler, "num_replicas", None)
        if all(isinstance(number, int) for number in found):
            return found  # type: ignore[return-value]
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    return 0, 1
