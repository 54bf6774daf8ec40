"""Which processes of this user and machine serve a page: a small file for each, in a folder that nobody else can read.

A file is removed by who has made it. One that was left behind, since its process was killed, is recognised (there is
no process of that number and start any more) and removed by whoever looks next.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from stoker.private_files import OpenFolder, UnsafeFile
from stoker.systems import IS_WINDOWS

_MODE = 0o700
_SUFFIX = ".json"
_LONGEST = 4096  # bytes of a file


@dataclass(frozen=True)
class Entry:
    """A process that serves a page.

    Attributes:
        pid: Of the process.
        started: When it was, as the system counts; 0 where that is not known.
        namespace: In which the number is its own. A container that shares our folder may have another.
        host: To connect to.
        port: To connect to.
        token: To be let in.
    """

    pid: int
    started: int
    namespace: str
    host: str
    port: int
    token: str

    @classmethod
    def of_this_process(cls, host: str, port: int, token: str) -> Entry:
        return cls(os.getpid(), _started(os.getpid()) or 0, _namespace(), host, port, token)

    @property
    def is_stale(self) -> bool:
        if self.namespace != _namespace():
            return False
        started = _started(self.pid)
        return started is None or started != self.started


class Registration:
    """Makes a process known, until ``end``.

    Raises:
        OSError: The folder cannot be used.
    """

    def __init__(self, entry: Entry) -> None:
        self._name = f"{entry.pid}-{secrets.token_hex(4)}{_SUFFIX}"
        with _folder() as folder:
            fd = folder.make(self._name, os.O_WRONLY)
            try:
                os.write(fd, json.dumps(asdict(entry)).encode())
            finally:
                os.close(fd)

    def end(self) -> None:
        with contextlib.suppress(OSError), _folder() as folder:
            os.unlink(self._name, dir_fd=folder.fd)


def entries() -> list[Entry]:
    """All that are alive. Removes those that are not.

    Raises:
        OSError: The folder cannot be used.
    """
    with _folder() as folder:
        found = []
        for name in sorted(os.listdir(folder.fd)):
            entry = _read(folder, name) if name.endswith(_SUFFIX) else None
            if entry is None:
                continue
            if entry.is_stale:
                with contextlib.suppress(OSError):
                    os.unlink(name, dir_fd=folder.fd)
            elif entry.namespace == _namespace():
                found.append(entry)
        return found


def _read(folder: OpenFolder, name: str) -> Entry | None:
    """None: it is just being written, has gone, or is not ours."""
    try:
        with open(folder.open(name, os.O_RDONLY), "rb") as file:
            told = json.loads(file.read(_LONGEST))
        entry = Entry(**told)
    except (OSError, ValueError, TypeError):
        return None
    is_sound = all(isinstance(value, kind) for value, kind in zip(asdict(entry).values(), _TYPES, strict=True))
    return entry if is_sound else None


_TYPES = (int, int, str, str, int, str)


@contextlib.contextmanager
def _folder() -> Iterator[OpenFolder]:
    if IS_WINDOWS:  # where no file is this user's alone by its mode, and each page shows its own process
        raise OSError(errno.ENOTSUP, "there is no list of the processes that serve a page on Windows")
    path = _path()
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, _MODE)
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise UnsafeFile(path, "it is no folder that this user alone can use: remove it")
    with OpenFolder.at(path) as folder:
        yield folder


def _path() -> str:
    own = os.environ.get("XDG_RUNTIME_DIR", "")
    if own and os.path.isdir(own):
        return os.path.join(own, "stoker")
    return os.path.join(tempfile.gettempdir(), f"stoker-{os.geteuid()}")


def _started(pid: int) -> int | None:
    """When the process was started, in ticks of the system's clock; None if there is none, 0 if it cannot be told."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as told:
            return int(told.read().rpartition(b")")[2].split()[19])
    except FileNotFoundError:
        if os.path.isdir("/proc/self"):
            return None
    except (OSError, IndexError, ValueError):
        return None
    if IS_WINDOWS:  # where to kill with 0 is Ctrl-C
        return 0
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return 0


def _namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""
