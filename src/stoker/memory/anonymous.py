"""Files that have no name: shared by passing their descriptor, gone when the last holder is."""

from __future__ import annotations

import ctypes
import errno
import os

from stoker.memory.descriptors import above_stdio
from stoker.memory.limits import explanation

_KEEP_SIZE, _PUNCH_HOLE = 1, 2  # Linux's numbers

SEALABLE = hasattr(os, "memfd_create")


def anonymous_file(*, memfd: bool = SEALABLE) -> int:
    """A descriptor of a new, empty file in memory.

    Where the system has no ``memfd_create`` (macOS), a temporary file that is unlinked at once does the same, at the
    disk's mercy.
    """
    if memfd:
        return above_stdio(os.memfd_create("stoker", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING))
    import tempfile  # only where there is no memfd, and slow to import

    fd, path = tempfile.mkstemp(prefix="stoker-")
    os.unlink(path)
    return above_stdio(fd)


def unnamed_file(folder: str) -> int:
    """A descriptor of a new file on the disk of that folder, which goes when the last holder does, however it ends."""
    try:
        return above_stdio(os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600))
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):
            raise
    import tempfile  # a file system that needs names

    fd, path = tempfile.mkstemp(prefix="stoker-", dir=folder)
    os.unlink(path)
    return above_stdio(fd)


def allocate(fd: int, offset: int, nbytes: int) -> None:
    """Gives the file real memory there, so that a shortage is an error now and not a SIGBUS later."""
    try:
        os.posix_fallocate(fd, offset, nbytes)
    except AttributeError:  # macOS: grow the file, the pages come when touched
        if os.fstat(fd).st_size < offset + nbytes:
            os.pwrite(fd, b"\0", offset + nbytes - 1)  # ftruncate might cut off what another process has just added
    except OSError as error:
        remedy = explanation(error) or "use a smaller batch_size, fewer workers or a smaller prefetch"
        raise MemoryError(
            f"no room for {nbytes / 2**20:.1f} MiB of shared memory ({error.strerror}): {remedy}"
        ) from error


def give_back(fd: int, offset: int, nbytes: int) -> None:
    """Makes a hole: what lies there is no longer needed. Where that can't be done, it just stays."""
    libc = ctypes.CDLL(None)
    if nbytes and hasattr(libc, "fallocate"):
        libc.fallocate(fd, _KEEP_SIZE | _PUNCH_HOLE, ctypes.c_int64(offset), ctypes.c_int64(nbytes))
