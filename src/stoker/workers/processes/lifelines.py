"""How a process and its child notice each other's end.

Linux has a descriptor of a process that becomes readable when it ends, whoever else holds what of it. Elsewhere (macOS)
the two have a pair of sockets, one each: it is readable when the other side is gone, however it went. Programs that
either starts do not inherit an end of it, and what either forks lets go of it.
"""

from __future__ import annotations

import os
import socket

from stoker.memory import above_stdio

NO_LIFELINE = -1  # where it is not needed
HAS_PIDFD = hasattr(os, "pidfd_open")

_held: set[int] = set()  # ends of this process


def new_lifeline() -> tuple[int, int]:
    """The ends of a child that is about to be started: ours, which is held, and its own, to be closed here then."""
    if HAS_PIDFD:
        return NO_LIFELINE, NO_LIFELINE
    ours, theirs = (above_stdio(end.detach()) for end in socket.socketpair())
    return held(ours), theirs


def held(end: int) -> int:
    """From now on, forks of this process do not have it."""
    _held.add(end)
    return end


def close_end(end: int) -> None:
    if end != NO_LIFELINE:
        _held.discard(end)
        os.close(end)


def watched(pid: int, end: int) -> int:
    """A descriptor that is readable when that process has ended: its own, or our end of the lifeline.

    Raises:
        ProcessLookupError: It has.
    """
    return above_stdio(os.pidfd_open(pid)) if end == NO_LIFELINE else held(end)


def _let_go_in_fork() -> None:
    for end in _held:
        os.close(end)
    _held.clear()


os.register_at_fork(after_in_child=_let_go_in_fork)
