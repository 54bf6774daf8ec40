"""Which workers a loader has: processes of this machine, started as torch would, or those of a Ray cluster."""

from __future__ import annotations

from typing import Any

import torch

import stoker

_STARTS = {"fork": "fork", "spawn": "spawn", "forkserver": "nursery"}


def number_of(workers: Any, num_workers: int, multiprocessing_context: Any) -> int:
    """How many there are, for ``num_workers``, which was not passed, or is the same."""
    if getattr(workers, "traits", None) is None or workers.traits.is_here:
        raise TypeError(f"workers={workers!r}: pass stoker.Ray(n, ...), or num_workers=n for processes of this machine")
    if workers.traits.is_elastic:
        raise ValueError(
            f"workers={workers!r}: which worker makes a batch follows from their number, as in torch, so it must stay "
            f"the same. Pass stoker.Ray(n) without autoscale"
        )
    if num_workers not in (0, workers.count):
        raise ValueError(f"num_workers={num_workers} with workers={workers!r}: leave num_workers out")
    if multiprocessing_context is not None:
        raise ValueError("multiprocessing_context= is for processes of this machine: leave it out with workers=")
    count: int = workers.count
    return count


def workers_of(loader: Any) -> stoker.Ray | stoker.Processes:
    if loader.workers is not None:
        found: stoker.Ray = loader.workers
        return found
    context = loader.multiprocessing_context or torch.multiprocessing
    # What "forkserver" is in Python, the nursery is here.
    return stoker.Processes(int(loader.num_workers), start=_STARTS[context.get_start_method()])  # type: ignore[arg-type]
