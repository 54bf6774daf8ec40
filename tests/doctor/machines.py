"""Machines to examine: files below a folder, in place of /proc and /sys."""

from __future__ import annotations

from pathlib import Path

from stoker.doctor import Finding, Host, Level, examine

SOUND = {
    "/proc/meminfo": "MemTotal: 67108864 kB\nMemAvailable: 50331648 kB\nSwapTotal: 8388608 kB\nSwapFree: 8388608 kB",
    "/proc/self/cgroup": "0::/user.slice/session.scope",
    "/proc/self/mountinfo": "20 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw",
    "/proc/sys/vm/max_map_count": "65530",
    "/sys/dev/block/259:2/queue/rotational": "0",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc",
    "/sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
    "/sys/kernel/mm/transparent_hugepage/shmem_enabled": "always within_size advise [never] deny force",
}


def host(root: Path, files: dict[str, str] | None = None, **given) -> Host:
    """A sound machine with 8 cores, but for these files and facts."""
    for path, text in (SOUND | (files or {})).items():
        target = root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text + "\n")
    facts = {"environment": {}, "all_cores": 8, "own_cores": 8, "open_files": 65536, "folder": "/data/images"}
    return Host(root=root, start_method="forkserver", **(facts | given))


def findings(root: Path, files: dict[str, str] | None = None, **given) -> dict[str, Finding]:
    """What is not fine, by check."""
    found = examine(host(root, files, **given))
    return {finding.check: finding for finding in found if finding.level > Level.FINE}
