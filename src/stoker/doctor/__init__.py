"""What on this machine makes loaders slow or makes them fail, and what mends it: ``stoker doctor``.

    finding.py       what a check says
    host.py          all that is read, behind one root, so that tests can give it other machines
    groups.py        control groups: what a container may use
    processors.py, memory.py, files.py, programs.py      the checks: each a small function of a host

A check returns findings. Imports nothing else of Stoker's but its version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from stoker.doctor import files, memory, processors, programs
from stoker.doctor.finding import Finding, Level
from stoker.doctor.host import Host

__all__ = ["CHECKS", "Finding", "Host", "Level", "examine"]

Check = Callable[[Host], Iterable[Finding]]

CHECKS: tuple[Check, ...] = (
    processors.quota,
    processors.threads_of_libraries,
    processors.clock_source,
    memory.memory_limit,
    memory.swap,
    memory.huge_pages,
    memory.map_count,
    memory.shared_memory_folder,
    files.open_files,
    files.disk,
    programs.start_method,
    programs.versions,
)


def examine(host: Host) -> list[Finding]:
    """What all checks have to say, the worst first."""
    found = [finding for check in CHECKS for finding in check(host)]
    return sorted(found, key=lambda finding: -finding.level)
