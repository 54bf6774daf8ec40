"""The contenders: one file each, all used as their own documentation recommends.

Each file has `open_loader(job)`. It is called in a process of its own, so nothing here imports a peer at the top
of this package.
"""

from __future__ import annotations

import importlib

from benchmarks.contenders.contender import Contender, Job
from benchmarks.workloads import GRAIN, LIMIT, SPDL, STOKER, SWIFT_FRONT, TINYLOADER, TORCH

_MODULES = {
    STOKER: "with_stoker",
    SWIFT_FRONT: "with_swift_front",
    TORCH: "with_torch",
    GRAIN: "with_grain",
    SPDL: "with_spdl",
    TINYLOADER: "with_tinyloader",
    LIMIT: "limit",
}

__all__ = ["Contender", "Job", "open_contender"]


def open_contender(name: str, job: Job) -> Contender:
    """Imports the contender and sets it up for the job."""
    module = importlib.import_module(f"{__name__}.{_MODULES[name]}")
    contender: Contender = module.open_loader(job)
    return contender
