"""Processor time and memory of a whole tree of processes, read from /proc."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

_PROC = Path("/proc")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def _stat(pid: int) -> list[str]:
    # The command's name may hold spaces and brackets: what follows its last bracket is regular.
    return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()


def _pids() -> Iterator[int]:
    return (int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit())


def end_session(session: int) -> None:
    """Ends what is left of a session that we began and whose leader is gone.

    All but Python's resource tracker: it frees what the others leave in /dev/shm, then ends by itself.
    """
    for pid in _pids():
        with contextlib.suppress(OSError, IndexError):
            command = (_PROC / str(pid) / "cmdline").read_bytes()
            if int(_stat(pid)[3]) == session and b"resource_tracker" not in command:
                os.kill(pid, signal.SIGKILL)


def tree(root: int) -> list[int]:
    """The process `root` and all that descend from it."""
    parents: dict[int, int] = {}
    for pid in _pids():
        with contextlib.suppress(OSError, IndexError):  # it may end while we look
            parents[pid] = int(_stat(pid)[1])
    found = [root]
    for pid in found:  # grows while it is walked
        found.extend(child for child, parent in parents.items() if parent == pid)
    return found


def cpu_seconds(root: int) -> float:
    """User and system time of the tree so far, children that have ended included."""
    ticks = 0
    for pid in tree(root):
        try:
            ticks += sum(int(field) for field in _stat(pid)[11:15])
        except OSError:
            continue
    return ticks / _TICKS_PER_S


def pss_bytes(root: int) -> int:
    """Proportional set size of the tree: each shared page counts once, divided among those who map it."""
    total = 0
    for pid in tree(root):
        try:
            lines = (_PROC / str(pid) / "smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    return total


def rss_bytes() -> int:
    """Resident memory of this process now, exactly: /proc's quicker counts lag behind by some hundred KB."""
    return next(
        int(line.split()[1]) * 1024
        for line in (_PROC / "self" / "smaps_rollup").read_text().splitlines()
        if line.startswith("Rss:")
    )


def peak_rss_bytes() -> int:
    """Resident memory of this process at its highest."""
    return _status_bytes("VmHWM")


def _status_bytes(field: str) -> int:
    for line in (_PROC / "self" / "status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise LookupError(f"/proc/self/status has no {field}")


def file_mappings() -> set[tuple[str, str]]:
    """The (addresses, inode) of each mapped file of this process; shared memory is always one."""
    lines = (line.split() for line in (_PROC / "self" / "maps").read_text().splitlines())
    return {(line[0], line[4]) for line in lines if line[4] != "0"}
