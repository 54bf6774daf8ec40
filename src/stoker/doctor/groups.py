"""Control groups: how much of the machine a container, or a service, may use. Versions 1 and 2 of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from stoker.doctor.host import Host

_MOUNT = "/sys/fs/cgroup"
_NO_LIMIT = 1 << 60  # bytes: version 1 has a number of about this size where there is no limit


def cpu_quota(host: Host) -> float | None:
    """Processors that may be used at the same time; None: all."""
    quotas = []
    for folder in _folders(host, "cpu"):
        of_v2 = (host.read(f"{folder}/cpu.max") or "").split()
        quota = host.number(f"{folder}/cpu.cfs_quota_us")
        period = host.number(f"{folder}/cpu.cfs_period_us")
        if len(of_v2) == 2 and of_v2[0].isdigit():
            quotas.append(int(of_v2[0]) / int(of_v2[1]))
        elif quota is not None and quota > 0 and period:
            quotas.append(quota / period)
    return min(quotas, default=None)


def memory_limit(host: Host) -> tuple[int, int] | None:
    """The lowest limit in bytes, and how much of it is used; None: no limit."""
    limits = []
    for folder in _folders(host, "memory"):
        for limit_file, usage_file in (
            ("memory.max", "memory.current"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        ):
            limit = host.number(f"{folder}/{limit_file}")
            if limit is not None and limit < _NO_LIMIT:
                limits.append((limit, host.number(f"{folder}/{usage_file}") or 0))
    return min(limits, default=None)


def is_container(host: Host) -> bool:
    if any(host.at(path).exists() for path in ("/.dockerenv", "/run/.containerenv")):
        return True
    groups = host.read("/proc/1/cgroup") or ""
    return any(word in groups for word in ("docker", "kubepods", "containerd", "lxc"))


def _folders(host: Host, controller: str) -> Iterator[str]:
    """Of this process's group and those around it. In a container, its own group is at the mount itself."""
    for line in (host.read("/proc/self/cgroup") or "0::/").splitlines():
        number, controllers, path = (*line.split(":", 2), "", "")[:3]
        if number == "0" or controller in controllers.split(","):
            base = _MOUNT if number == "0" else f"{_MOUNT}/{controller}"
            own = PurePosixPath(path.lstrip("/"))
            yield from (f"{base}/{folder}" for folder in (own, *own.parents))
