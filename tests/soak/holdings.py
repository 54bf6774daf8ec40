"""What this process holds of the system."""

from __future__ import annotations

import gc
import os
from dataclasses import dataclass

import psutil


@dataclass(frozen=True)
class Holdings:
    descriptors: int
    megabytes: int  # resident
    children: int

    @classmethod
    def now(cls) -> Holdings:
        gc.collect()
        process = psutil.Process()
        return cls(
            descriptors=len(os.listdir("/proc/self/fd")),
            megabytes=process.memory_info().rss // 2**20,
            children=len(process.children(recursive=True)),
        )

    def leaked_since(self, before: Holdings) -> bool:
        """Memory is for the reader to judge: allocators keep some of it."""
        return self.descriptors > before.descriptors or self.children > before.children
