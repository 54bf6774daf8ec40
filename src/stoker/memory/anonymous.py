"""Files that have no name: shared by passing their descriptor, gone when the last holder is."""

from __future__ import annotations

import os

from stoker.memory.limits import explanation

SEALABLE = hasattr(os, "memfd_create")


def anonymous_file(*, memfd: bool = SEALABLE) -> int:
    """A descriptor of a new, empty file in memory.

    Where the system has no ``memfd_create`` (macOS), a temporary file that is unlinked at once does the same, at the
    disk's mercy.
    """
    if memfd:
        return os.memfd_create("stoker", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    import tempfile  # only where there is no memfd, and slow to import

    fd, path = tempfile.mkstemp(prefix="stoker-")
    os.unlink(path)
    return fd


def allocate(fd: int, offset: int, nbytes: int) -> None:
    """Gives the file real memory there, so that a shortage is an error now and not a SIGBUS later."""
    try:
        os.posix_fallocate(fd, offset, nbytes)
    except AttributeError:  # macOS: grow the file, the pages come when touched
        os.ftruncate(fd, max(os.fstat(fd).st_size, offset + nbytes))
    except OSError as error:
        remedy = explanation(error) or "use a smaller batch_size, fewer workers or a smaller prefetch"
        raise MemoryError(
            f"no room for {nbytes / 2**20:.1f} MiB of shared memory ({error.strerror}): {remedy}"
        ) from error
