"""Memory: limits, swapping, pages, mappings."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from stoker.doctor import groups
from stoker.doctor.finding import Finding, Level
from stoker.doctor.host import Host

_GIB = 1 << 30
_FULL = 0.9  # of the memory: the next dataset may be the one that is killed
_SWAPPED = 0.02  # of the memory: more than what lies there since the start of the machine
_MAPS = 65530  # mappings a process: the kernel's own default


def memory_limit(host: Host) -> Iterator[Finding]:
    """How much there is, by the machine and by the control group."""
    memory, limit = host.memory(), groups.memory_limit(host)
    total = memory.get("MemTotal")
    if total is None:
        return
    used, where = total - memory.get("MemAvailable", total), "machine"
    if limit is not None and limit[0] < total:
        total, used = limit
        where = "container" if groups.is_container(host) else "control group"
    told = f"{used / _GIB:.1f} of the {where}'s {total / _GIB:.1f} GiB are in use"
    if used <= _FULL * total:
        yield Finding("memory", Level.FINE, told)
        return
    yield Finding(
        "memory",
        Level.WARNING,
        told,
        "The kernel kills a process when it is full, most likely a worker, whose batches are then made again.",
        "stoker.Loader(..., workers=fewer, prefetch=1), or a higher limit (docker run --memory=...)",
    )


def swap(host: Host) -> Iterator[Finding]:
    memory = host.memory()
    total, size = memory.get("MemTotal", 0), memory.get("SwapTotal", 0)
    used = size - memory.get("SwapFree", size)
    if not size:
        yield Finding("swap", Level.FINE, "none")
    elif used <= _SWAPPED * total:
        yield Finding("swap", Level.FINE, f"{used / _GIB:.1f} of {size / _GIB:.1f} GiB are in use")
    else:
        yield Finding(
            "swap",
            Level.WARNING,
            f"{used / _GIB:.1f} of {size / _GIB:.1f} GiB are in use",
            "Memory that was swapped out is read from disk again when a worker or the training touches it.",
            "use less memory, then: sudo swapoff -a && sudo swapon -a",
        )


def huge_pages(host: Host) -> Iterator[Finding]:
    """Of the slots, which are shared memory, and of all else."""
    of_all = _chosen(host.read("/sys/kernel/mm/transparent_hugepage/enabled"))
    of_shared = _chosen(host.read("/sys/kernel/mm/transparent_hugepage/shmem_enabled"))
    if of_all is None:
        return
    told = f"{of_all}; of shared memory: {of_shared or 'unknown'}"
    if of_all != "never":
        yield Finding("transparent huge pages", Level.FINE, told)
        return
    yield Finding(
        "transparent huge pages",
        Level.NOTE,
        told,
        "Large arrays are mapped in pages of 4 KiB, which costs datasets in memory some speed. Slots are reused, so "
        "they are mapped once in either case.",
        "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
    )


def map_count(host: Host) -> Iterator[Finding]:
    allowed = host.number("/proc/sys/vm/max_map_count")
    if allowed is None:
        return
    if allowed >= _MAPS:
        yield Finding("vm.max_map_count", Level.FINE, f"{allowed:,}")
        return
    yield Finding(
        "vm.max_map_count",
        Level.WARNING,
        f"{allowed:,}, less than the kernel's own {_MAPS:,}",
        "Each batch that you hold, and each file that a dataset maps, is a mapping: list(loader) may fail with ENOMEM.",
        f"sudo sysctl vm.max_map_count={_MAPS}",
    )


def shared_memory_folder(host: Host) -> Iterator[Finding]:
    """It is what stops others: worth a note to whoever compares."""
    try:
        found = os.statvfs(host.at("/dev/shm"))
    except (AttributeError, OSError):  # Windows, macOS
        return
    size = found.f_blocks * found.f_frsize
    told = f"{size / _GIB:.2g} GiB"
    if size >= _GIB:
        yield Finding("/dev/shm", Level.FINE, told)
        return
    yield Finding(
        "/dev/shm",
        Level.NOTE,
        told,
        "Stoker does not use it. torch's DataLoader does, and fails where it is too small for its batches.",
        "docker run --shm-size=8g, for torch's DataLoader",
    )


def _chosen(text: str | None) -> str | None:
    """Of a line like ``always [madvise] never``."""
    found = re.search(r"\[(.+?)\]", text or "")
    return None if found is None else found[1]
