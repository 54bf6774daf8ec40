"""The processes that this one has started, without those that Python itself keeps."""

from __future__ import annotations

import contextlib
import multiprocessing.resource_tracker

import psutil


def children() -> list[psutil.Process]:
    """All there are below this process, but for the one in which ``multiprocessing`` keeps account of semaphores.

    That is started by whoever first needs it, a test of another file perhaps, and lives as long as this process.
    """
    found = psutil.Process().children(recursive=True)
    tracker = multiprocessing.resource_tracker._resource_tracker._pid
    return [child for child in found if child.pid != tracker]


def nurseries() -> list[psutil.Process]:
    """The living ones: at most one. After a kill there is none until the loader has noticed it and started another.

    A nursery's workers are forked and have the same command line, but are not children of this process.
    """
    name = "stoker.workers.processes.nursery_process"
    found = []
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
            if name in " ".join(child.cmdline()):
                found.append(child)
    return found
