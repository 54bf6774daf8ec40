"""Descriptors of ours: never 0, 1 or 2, whatever the program has closed.

Somebody will write to standard output or error, a print of the dataset's or a message of a C library. Were the slots'
file number 2, that would land in a batch.
"""

from __future__ import annotations

import contextlib
import os

_STANDARD = range(3)
_OPEN_FILES = "/proc/self/fd"


def above_stdio(fd: int) -> int:
    """The same open file under a number of 3 or more. Takes ``fd`` over: use what this returns, and nothing else."""
    if fd not in _STANDARD:
        return fd
    import fcntl  # which Windows has not, where no descriptor of ours comes this way

    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, len(_STANDARD))
    finally:
        os.close(fd)


def pipe(*, blocking: bool = True) -> tuple[int, int]:
    """The reading and the writing end."""
    reading, writing = os.pipe()  # which programs that are started do not inherit
    if not blocking:
        os.set_blocking(reading, False)
        os.set_blocking(writing, False)
    if reading in _STANDARD or writing in _STANDARD:
        with contextlib.ExitStack() as undo:
            undo.callback(os.close, writing)
            reading = above_stdio(reading)
            undo.callback(os.close, reading)
            undo.pop_all()
            writing = above_stdio(writing)
    return reading, writing


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def fill_stdio() -> None:
    """In a process of ours: what is closed of 0, 1 and 2 goes nowhere from now on, and no file gets that number."""
    for fd in _STANDARD:
        if not is_open(fd):
            with contextlib.suppress(OSError):  # no /dev/null
                opened = os.open(os.devnull, os.O_RDWR)  # the lowest number that is free, which is this one
                os.set_inheritable(opened, True)


def reopened(fd: int, flags: int) -> int:
    """The same file, opened once more: with a position and with locks of its own.

    Raises:
        OSError: There is no /proc, and no other way to open a file that has no name.
    """
    try:
        return above_stdio(os.open(f"{_OPEN_FILES}/{fd}", flags | os.O_CLOEXEC))
    except FileNotFoundError as error:
        if os.path.isdir(_OPEN_FILES):
            raise
        raise OSError(
            error.errno,
            "/proc is not mounted here, and there is no other way to open a file without a name once more. Mount it "
            "(`mount -t proc proc /proc`), or do without rotation=",
        ) from error
