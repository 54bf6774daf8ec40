"""The system's limits, explained: which one it was, how much it allows, and what to change."""

from __future__ import annotations

import contextlib
import errno
import functools
from collections.abc import Iterator

_MOST_MAPPINGS = 65_530  # that a process may have, where Linux is not told otherwise
_OUR_PART = 4  # a quarter of them: malloc needs some, too, and fails where there are none left


@functools.cache
def mappings_allowed() -> int:
    """Pieces of memory that all loaders of this process may map."""
    try:
        with open("/proc/sys/vm/max_map_count") as file:
            most = int(file.read())
    except (OSError, ValueError):
        most = _MOST_MAPPINGS
    return most // _OUR_PART


@contextlib.contextmanager
def limits_explained() -> Iterator[None]:
    """An ``OSError`` that comes out of here says which limit was reached."""
    try:
        yield
    except OSError as error:
        words = explanation(error)
        if not words:
            raise
        raise OSError(error.errno, words) from error


def explanation(error: OSError) -> str:
    """What to change; empty if no limit is to blame."""
    if error.errno == errno.EAGAIN:
        return "no more processes may be made. Raise the limit (`ulimit -u`, or the container's) or use fewer workers"
    try:
        import resource
    except ImportError:  # Windows
        return ""
    if error.errno == errno.EMFILE:
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return (
            f"too many open files: this process may have {limit}, of which a loader takes 10 and each worker "
            f"process 3. Raise the limit (`ulimit -n`) or use fewer workers"
        )
    if error.errno == errno.EFBIG:
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
        room = f"{limit / 2**20:.1f} MiB"
        return f"files may have {room} here, and shared memory counts as one. Raise the limit (`ulimit -f`)"
    return ""
