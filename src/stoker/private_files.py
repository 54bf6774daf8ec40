"""Files of ours: nobody else can read them, and no link that somebody has put in our way is followed.

The rules, for every file that Stoker writes for itself (caches, quarantine files):

- It is a regular file with one name. A symbolic link, a second (hard) link, a pipe or a folder in its place is an
  error, not something to write through.
- It is of this user, or root's; in a folder that is shared with a group, of anybody in there.
- Its mode is 0600, whatever the umask. In a shared folder it is 0660.

A folder is shared if its owner has said so, as one does with a folder for a team: group-writable and setgid, mode 2770.

Windows has no modes: there a file is whoever's its folder lets have it, and a file that the user names is just opened.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from dataclasses import dataclass

from stoker.systems import IS_WINDOWS

_FILE, _FILE_OF_A_GROUP = 0o600, 0o660
_SHARED = stat.S_ISGID | stat.S_IWGRP
_ROOT = 0
_OWN_DESCRIPTORS = "/proc/self/fd/"  # where /dev/stderr leads
# Without O_NONBLOCK, to open a pipe is to wait for its other end. Windows has none of these.
_CAREFULLY = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_CLOEXEC", "O_NONBLOCK"))
_ON_WINDOWS = sum(getattr(os, name, 0) for name in ("O_BINARY", "O_NOINHERIT"))


class UnsafeFile(OSError):
    """What is there is not what we would have written: somebody else's file, or a link. ``strerror`` tells."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(errno.EPERM, why, path)


@dataclass(frozen=True)
class OpenFolder:
    """A folder that is open: names in it are looked up there, though its path may lead elsewhere by now.

    Args:
        fd: The caller's to close.
        path: As it was given.
        is_shared: With a group.
        anybodys: Files in it may be of any user: for who looks at them, or removes them.
    """

    fd: int
    path: str
    is_shared: bool
    anybodys: bool = False

    @classmethod
    def at(cls, path: str, *, anybodys: bool = False) -> OpenFolder:
        """The path may be a link: it is the user who gives it."""
        fd = os.open(path or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            return cls(fd, path, is_shared(os.fstat(fd)), anybodys)
        except BaseException:
            os.close(fd)
            raise

    def __enter__(self) -> OpenFolder:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)

    @property
    def mode(self) -> int:
        """Of files in it."""
        return _FILE_OF_A_GROUP if self.is_shared else _FILE

    def open(self, name: str, flags: int) -> int:
        """A descriptor of a file that is there.

        Raises:
            FileNotFoundError: It is not.
            UnsafeFile: It is a link, no regular file, or somebody else's.
        """
        path = os.path.join(self.path, name)
        anybodys = self.is_shared or self.anybodys
        check_file(path, os.stat(name, dir_fd=self.fd, follow_symlinks=False), anybodys=anybodys)
        try:
            fd = os.open(name, flags | _CAREFULLY, dir_fd=self.fd)
        except OSError as error:
            if error.errno == errno.ELOOP:  # put there just now
                raise UnsafeFile(path, "it is a symbolic link") from None
            raise
        try:
            found = os.fstat(fd)
            check_file(path, found, anybodys=anybodys)
            self._tighten(fd, found)
        except BaseException:
            os.close(fd)
            raise
        return fd

    def open_or_make(self, name: str, flags: int) -> int:
        """The same; a file that is not there is made."""
        while True:
            try:
                return self.open(name, flags)
            except FileNotFoundError:
                pass
            try:
                return self.make(name, flags)
            except FileExistsError:  # somebody was quicker
                continue

    def make(self, name: str, flags: int) -> int:
        """A descriptor of a new file.

        Raises:
            FileExistsError: The name is taken, be it by a link that leads nowhere.
        """
        fd = os.open(name, flags | os.O_CREAT | os.O_EXCL | _CAREFULLY, self.mode, dir_fd=self.fd)
        with contextlib.suppress(OSError):  # a file system that has no modes
            os.fchmod(fd, self.mode)  # whatever the umask
        return fd

    def _tighten(self, fd: int, found: os.stat_result) -> None:
        """One that an earlier version, or the user, has left open to others."""
        if found.st_mode & 0o777 & ~self.mode and found.st_uid == os.geteuid():
            with contextlib.suppress(OSError):
                os.fchmod(fd, found.st_mode & self.mode)


def is_shared(folder: os.stat_result) -> bool:
    """With a group, as its owner has said."""
    return folder.st_mode & _SHARED == _SHARED


def check_file(path: str, found: os.stat_result, *, anybodys: bool) -> None:
    """
    Raises:
        UnsafeFile: It is no file of ours.
    """
    if not stat.S_ISREG(found.st_mode):
        raise UnsafeFile(path, f"it is {_kind(found.st_mode)} and no regular file")
    if found.st_nlink > 1:
        raise UnsafeFile(path, f"the file has {found.st_nlink} names (hard links)")
    if not anybodys and found.st_uid not in (os.geteuid(), _ROOT):
        raise UnsafeFile(path, f"it belongs to another user ({found.st_uid}, and this one is {os.geteuid()})")


def check_folder(found: os.stat_result) -> str | None:
    """Why others could exchange the files of a folder, and the remedy; None: only who may can."""
    if found.st_mode & stat.S_IWOTH and not found.st_mode & stat.S_ISVTX:
        return "every user of this machine can write to it: take that away with `chmod o-w`"
    if found.st_uid in (os.geteuid(), _ROOT):
        return None
    if is_shared(found) and found.st_gid in (os.getegid(), *os.getgroups()):
        return None
    return (
        f"it belongs to another user ({found.st_uid}, and this one is {os.geteuid()}). To share it, "
        f"its owner gives it to a group that you are in, too: `chgrp GROUP` and `chmod 2770`"
    )


def open_to_append(path: str) -> int:
    """A descriptor of a file that the user has named, made if it is not there.

    A link that this user or root has made is followed, and a device or pipe of theirs is written to: ``/dev/stderr``.

    Raises:
        UnsafeFile: It is somebody else's, or somebody else's link.
    """
    flags = os.O_WRONLY | os.O_APPEND
    if IS_WINDOWS:
        return os.open(path, flags | os.O_CREAT | _ON_WINDOWS)
    path = _followed(path)
    if path.startswith(_OWN_DESCRIPTORS):
        return os.open(path, flags | os.O_CLOEXEC)
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        found = None
    if found is not None and not stat.S_ISREG(found.st_mode) and not stat.S_ISLNK(found.st_mode):
        return _open_device(path, found, flags)
    folder, name = os.path.split(path)
    with OpenFolder.at(folder) as opened:
        return opened.open_or_make(name, flags)


def read_regular(path: str) -> bytes:
    """What a file holds that others may read, too.

    Raises:
        UnsafeFile: It is a link or no regular file: to read a pipe is to wait for ever.
    """
    try:
        with open(os.open(path, os.O_RDONLY | _CAREFULLY | _ON_WINDOWS), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise UnsafeFile(path, f"it is {_kind(found.st_mode)} and no regular file")
            return file.read()
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise UnsafeFile(path, "it is a symbolic link") from None
        raise


def _followed(path: str) -> str:
    """Where the user's own links lead, as far as they do."""
    for _ in range(40):  # as the system has it
        try:
            found = os.lstat(path)
        except OSError:
            return path
        if not stat.S_ISLNK(found.st_mode) or path.startswith(_OWN_DESCRIPTORS):
            return path
        if found.st_uid not in (os.geteuid(), _ROOT):
            raise UnsafeFile(path, f"it is a symbolic link of another user ({found.st_uid})")
        path = os.path.join(os.path.dirname(path), os.readlink(path))
    return path


def _open_device(path: str, found: os.stat_result, flags: int) -> int:
    if found.st_uid not in (os.geteuid(), _ROOT):
        raise UnsafeFile(path, f"it is {_kind(found.st_mode)} of another user ({found.st_uid})")
    fd = os.open(path, flags | _CAREFULLY)
    os.set_blocking(fd, True)
    return fd


def _kind(mode: int) -> str:
    kinds = {
        stat.S_IFLNK: "a symbolic link",
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a pipe",
        stat.S_IFSOCK: "a socket",
    }
    return kinds.get(stat.S_IFMT(mode), "a device")
