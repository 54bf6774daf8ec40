"""Programs: Python, the libraries around Stoker, and how they start processes."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator

from stoker import __version__
from stoker.doctor.finding import Finding, Level
from stoker.doctor.host import Host

_OLDEST = {"numpy": (1, 26), "torch": (2, 1), "jax": (0, 4, 30), "ray": (2, 40)}  # as in pyproject.toml
_OTHERS = ("tensorflow", "tinygrad", "pyarrow", "rich", "msgspec")


def start_method(host: Host) -> Iterator[Finding]:
    """How ``multiprocessing`` starts processes, which Stoker does not use unless it is told to."""
    if host.start_method != "fork":
        yield Finding("start of processes", Level.FINE, f"multiprocessing uses {host.start_method}")
        return
    yield Finding(
        "start of processes",
        Level.NOTE,
        "multiprocessing forks, which is the default of this Python",
        "A fork of a process that has threads (torch, JAX, OpenMP) can hang in the child. Stoker's workers come from a "
        "process without threads; stoker.Processes(n, start='fork'), and torch's DataLoader, do fork.",
        "multiprocessing.set_start_method('forkserver'), for others than Stoker",
    )


def versions(host: Host) -> Iterator[Finding]:
    """What is installed, and what of it is too old."""
    installed = {name: found for name in (*_OLDEST, *_OTHERS) if (found := host.version(name)) is not None}
    for name, oldest in _OLDEST.items():
        if name in installed and _numbers(installed[name]) < oldest:
            needed = ".".join(map(str, oldest))
            yield Finding(
                "versions",
                Level.WARNING,
                f"{name} {installed[name]}",
                f"Stoker is made for {name} {needed} and newer.",
                f'pip install "{name}>={needed}"',
            )
    listed = ", ".join(f"{name} {found}" for name, found in installed.items())
    system = f"Python {platform.python_version()}, {platform.system()} {platform.release()}"
    yield Finding("versions", Level.FINE, f"stoker {__version__}, {system}, {listed}")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version.partition("+")[0])[:3])
