"""A machine, as far as checks look at it."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_MANY_FILES = 8192  # that a process on Windows may have open, at the most


def _own_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _soft_open_files() -> int:
    try:
        import resource
    except ImportError:  # Windows
        return _MANY_FILES
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


@dataclass(frozen=True)
class Host:
    """What checks read: files below ``root``, and what the process was given.

    Attributes:
        root: Where ``/proc`` and ``/sys`` are.
        workers: That a loader has. None: as many as there are cores.
        environment: Variables.
        all_cores: Of the machine, as ``os.cpu_count()`` has them.
        own_cores: Those that this process may run on, by its affinity.
        open_files: How many it may have open, the soft limit of ``ulimit -n``.
        folder: That it works in.
        start_method: Of ``multiprocessing``.
    """

    root: Path = Path("/")
    workers: int | None = None
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    all_cores: int = field(default_factory=lambda: os.cpu_count() or 1)
    own_cores: int = field(default_factory=_own_cores)
    open_files: int = field(default_factory=_soft_open_files)
    folder: str = field(default_factory=os.getcwd)
    start_method: str = field(default_factory=lambda: multiprocessing.get_context().get_start_method())

    def read(self, path: str) -> str | None:
        """A file's text, without what is blank around it; None if there is no such file, or it may not be read."""
        try:
            return self.at(path).read_text(errors="replace").strip()
        except OSError:
            return None

    def number(self, path: str) -> int | None:
        """The number in a file; None if there is none, as in ``max``."""
        text = self.read(path)
        return int(text) if text is not None and text.lstrip("-").isdigit() else None

    def at(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    def memory(self) -> dict[str, int]:
        """What ``/proc/meminfo`` has, in bytes."""
        found = {}
        for line in (self.read("/proc/meminfo") or "").splitlines():
            name, _, rest = line.partition(":")
            amount = rest.split()
            if amount and amount[0].isdigit():
                found[name] = int(amount[0]) * (1024 if amount[1:] == ["kB"] else 1)
        return found

    def version(self, package: str) -> str | None:
        """Of an installed package."""
        try:
            return version(package)
        except PackageNotFoundError:
            return None
