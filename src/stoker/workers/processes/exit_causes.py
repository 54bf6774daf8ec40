"""Why a worker died, as far as one can tell from outside."""

from __future__ import annotations

import contextlib
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

UNKNOWN = 2**16  # as an exit code: somebody else in the parent has asked for it, and the system tells it once
_CRASHES = (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT)
_ENDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_TIGHT = 0.05  # of the memory left: little enough to suspect the OOM killer where it can't be asked
_FRAME = re.compile(r'File "(.+)", line (\d+) in (.+)')


class Exit(NamedTuple):
    """How a process ended. ``code``: as ``subprocess`` gives it. ``peak``: the most memory it had, 0 if not known.

    ``complaint``: why it could not even begin, if it could not.
    """

    code: int
    peak: int = 0
    complaint: str = ""


class Memory(NamedTuple):
    """What there is, in bytes, and where."""

    used: int
    limit: int
    whose: str

    @property
    def is_tight(self) -> bool:
        return self.limit - self.used < _TIGHT * self.limit

    def __str__(self) -> str:
        return f"{_size(self.used)} of {_size(self.limit)} {self.whose} are in use"


def describe(code: int) -> str:
    """An exit code in words: ``SIGKILL (-9)``, ``exit code 1``."""
    if code == UNKNOWN:
        return "an unknown cause"
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"{signal.Signals(-code).name} ({code})"
    except ValueError:
        return f"signal {-code}"


def likely_cause(ended: Exit, stack: str, oom_kills_before: int) -> str:
    """What probably ended a worker, with the figures, and what to change."""
    number = -ended.code
    if ended.complaint:
        return f"its process could not start:\n{ended.complaint}"
    if ended.code == UNKNOWN:
        return "not known, since this program ignores SIGCHLD or waits for all of its children"
    if number == signal.SIGKILL:
        return _of_sigkill(ended.peak, oom_kills_before)
    if number in _CRASHES:
        return f"a crash in native code{_called_from(stack)}"
    if number in _ENDED:
        return "another program or a user sent the signal"
    return f"its code ended the process{_called_from(stack)}"


def oom_kills() -> int:
    """How many processes the kernel has killed for want of memory so far, here and on the whole machine."""
    counts = [number_after("oom_kill", file) for file in (Path("/proc/vmstat"), *cgroup_files("memory.events"))]
    return sum(counts) + sum(number_after("oom_kill", file) for file in cgroup_files("memory.oom_control"))


def memories() -> list[Memory]:
    """The machine's memory, and its cgroup's where that has a limit."""
    found = []
    total, free = (1024 * number_after(key, Path("/proc/meminfo")) for key in ("MemTotal:", "MemAvailable:"))
    if total:
        found.append(Memory(total - free, total, "of the machine's memory"))
    for limit_name, used_name in (
        ("memory.max", "memory.current"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes"),
    ):
        for limit_file, used_file in zip(cgroup_files(limit_name), cgroup_files(used_name), strict=False):
            with contextlib.suppress(OSError, ValueError):  # "max" is no limit
                limit, used = int(limit_file.read_text()), int(used_file.read_text())
                if 0 < limit < (total or 2**62):
                    found.append(Memory(used, limit, "that this cgroup may use"))
    return found


def _of_sigkill(peak: int, oom_kills_before: int) -> str:
    there = memories()
    figures = "; ".join(
        [*([f"it had up to {_size(peak)}"] if peak else []), *map(str, there)],
    )
    if oom_kills() > oom_kills_before:
        return f"the kernel's OOM killer ({figures}). Use fewer workers, smaller batches or a smaller prefetch"
    if any(memory.is_tight for memory in there):
        return f"out of memory ({figures}). Use fewer workers, smaller batches or a smaller prefetch"
    return f"another program or a user sent the signal, as no out-of-memory kill was recorded ({figures})"


def _size(nbytes: int) -> str:
    return f"{nbytes / 2**30:.1f} GiB" if nbytes >= 2**30 else f"{nbytes / 2**20:.0f} MiB"


def _called_from(stack: str) -> str:
    """The innermost Python frame of the thread that crashed."""
    _, _, current = stack.rpartition("Current thread")
    frame = _FRAME.search(current)
    if frame is None:
        return ""
    path, line, function = frame.groups()
    return f", called from {function} ({path}, line {line})"


def cgroup_files(name: str) -> Iterator[Path]:
    """Those of that name, of this process's own cgroups, version 2 or 1; inside a container its own is the root."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        root = Path("/sys/fs/cgroup", "memory" if controllers else "")
        for folder in (root / path.lstrip("/"), root):
            if (folder / name).exists():
                yield folder / name
                break


def number_after(key: str, file: Path) -> int:
    """The one that follows this word at the beginning of a line; 0 where there is none."""
    with contextlib.suppress(OSError, ValueError):
        for line in file.read_text().splitlines():
            if line.startswith(key):
                word, number, *_ = line.split()
                if word == key:
                    return int(number)
    return 0
