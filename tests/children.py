"""The processes that this one has started, without those that Python itself keeps."""

from __future__ import annotations

import multiprocessing.resource_tracker

import psutil


def children() -> list[psutil.Process]:
    """All there are below this process, but for the one in which ``multiprocessing`` keeps account of semaphores.

    That is started by whoever first needs it, a test of another file perhaps, and lives as long as this process.
    """
    found = psutil.Process().children(recursive=True)
    tracker = multiprocessing.resource_tracker._resource_tracker._pid
    return [child for child in found if child.pid != tracker]


def nursery() -> psutil.Process:
    """Its workers, forked, have the same command line."""
    name = "stoker.workers.processes.nursery_process"
    (found,) = [child for child in psutil.Process().children() if name in " ".join(child.cmdline())]
    return found
