"""Files: how many may be open, and what they lie on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from stoker.doctor.finding import Finding, Level
from stoker.doctor.host import Host

_OPEN_FILES = 1024  # what most systems begin with
_REMOTE = {"nfs", "nfs4", "cifs", "smb3", "lustre", "ceph", "glusterfs", "beegfs", "gpfs", "afs", "9p", "virtiofs"}
_VIRTUAL = ("vd", "xvd", "nbd", "rbd")  # what they are on their host is not known here, and they often claim to spin


@dataclass(frozen=True)
class Mount:
    """What a folder lies on."""

    device: str  # as in 8:1
    at: str
    kind: str
    source: str


def open_files(host: Host) -> Iterator[Finding]:
    told = f"{host.open_files:,}" if host.open_files >= 0 else "unlimited"
    if not 0 <= host.open_files < _OPEN_FILES:
        yield Finding("open files (ulimit -n)", Level.FINE, told)
        return
    yield Finding(
        "open files (ulimit -n)",
        Level.WARNING,
        told,
        "Each worker takes about five descriptors, and datasets have files of their own: a loader fails with "
        "'Too many open files'.",
        "ulimit -n 65536",
    )


def disk(host: Host) -> Iterator[Finding]:
    """Of the folder that this is run in."""
    mount = _mount_of(host)
    if mount is None:
        return
    told = f"{host.folder} is on {mount.source} ({mount.kind})"
    if mount.kind in _REMOTE or mount.kind.startswith("fuse"):
        yield Finding(
            "disk",
            Level.NOTE,
            f"{told}, which is remote",
            "Each read waits for the network. More workers than cores, or threads, help; so does a copy here.",
            "stoker.Loader(..., cache=stoker.Cache(path_on_a_local_disk))",
        )
    elif not _spins(host, mount.device):
        yield Finding("disk", Level.FINE, told)
    elif PurePosixPath(mount.source).name.startswith(_VIRTUAL):
        yield Finding("disk", Level.FINE, f"{told}, a virtual disk")
    else:
        yield Finding(
            "disk",
            Level.WARNING,
            f"{told}, which spins",
            "It reads about a hundred samples a second in shuffled order, and far more in the order they lie in.",
            "shuffle=4096 (nearby samples only), stoker.Chunks(files), or stoker.Cache(path_on_an_ssd)",
        )


def _mount_of(host: Host) -> Mount | None:
    """The innermost one that the folder is below."""
    found: Mount | None = None
    folder = PurePosixPath(host.folder)
    for line in (host.read("/proc/self/mountinfo") or "").splitlines():
        own, _, other = line.partition(" - ")
        fields, others = own.split(), other.split()
        if len(fields) < 5 or len(others) < 2:
            continue
        at = fields[4].replace("\\040", " ")
        is_deeper = found is None or len(at) >= len(found.at)
        if is_deeper and (folder.is_relative_to(at)):
            found = Mount(fields[2], at, others[0], others[1])
    return found


def _spins(host: Host, device: str) -> bool:
    """A partition has no queue of its own, but the disk that it is on has."""
    folder = f"/sys/dev/block/{device}"
    queues = (f"{folder}/queue/rotational", f"{folder}/../queue/rotational")
    return next((text == "1" for path in queues if (text := host.read(path)) is not None), False)
