"""What this process holds of the system."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import threading
from dataclasses import dataclass

import psutil

_PATIENCE_S = 5.0


@dataclass(frozen=True)
class Holdings:
    descriptors: int
    megabytes: int  # resident
    children: int
    threads: int

    @classmethod
    def now(cls) -> Holdings:
        """Once what was left alone has ended: threads that hung for a while."""
        for thread in threading.enumerate():
            if thread.name.startswith("stoker"):
                thread.join(_PATIENCE_S)
        gc.collect()
        with contextlib.suppress(AttributeError):  # not glibc
            ctypes.CDLL(None).malloc_trim(0)  # what is free and kept is no leak
        process = psutil.Process()
        return cls(
            descriptors=len(os.listdir("/proc/self/fd")),
            megabytes=process.memory_info().rss // 2**20,
            children=len(process.children(recursive=True)),
            threads=threading.active_count(),
        )

    def leaked_since(self, before: Holdings) -> bool:
        """Memory is for the reader to judge: allocators keep some of it."""
        pairs = (self.descriptors, before.descriptors), (self.children, before.children), (self.threads, before.threads)
        return any(after > earlier for after, earlier in pairs)
