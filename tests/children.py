"""The processes that this one has started, without those that Python itself keeps."""

from __future__ import annotations

import contextlib
import multiprocessing.resource_tracker
import os

import psutil

left_alone: set[int] = set()  # with all that they start: a browser, whose processes come and go as it likes


def child_pids() -> set[int]:
    """All there are below this process, but for the one in which ``multiprocessing`` keeps account of semaphores.

    That is started by whoever first needs it, a test of another file perhaps, and lives as long as this process.

    Read from the kernel's own lists, as each test asks twice: ``psutil`` would look at all processes of the machine.
    A list may lack somebody if another child ends while it is read.
    """
    return set(_below(os.getpid())) - {multiprocessing.resource_tracker._resource_tracker._pid}


def children() -> list[psutil.Process]:
    """The same, each to be asked for more. One that is about to end may be there or not."""
    found = []
    for pid in sorted(child_pids()):
        with contextlib.suppress(psutil.NoSuchProcess):
            found.append(psutil.Process(pid))
    return found


def _below(pid: int) -> list[int]:
    found = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it ends just now
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                with open(f"/proc/{pid}/task/{thread}/children") as listed:
                    found += [child for child in map(int, listed.read().split()) if child not in left_alone]
    return [*found, *(grandchild for child in found for grandchild in _below(child))]


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
