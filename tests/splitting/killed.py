"""A split that kills itself: ``python -m tests.splitting.killed SOURCE INTO LIMIT LINE``, by SIGKILL at a line."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable

import stoker
import stoker.splitting

ROOM = os.path.dirname(stoker.splitting.__file__)


def counting(at_line: Callable[[int], None]):
    """A tracer that tells how many lines of the package have been run."""
    lines = 0

    def trace(frame, event, _):
        nonlocal lines
        if not frame.f_code.co_filename.startswith(ROOM):
            return None
        if event == "line":
            lines += 1
            at_line(lines)
        return trace

    return trace


def traced(source, into, limit: dict, at_line: Callable[[int], None]) -> None:
    before = sys.gettrace()
    sys.settrace(counting(at_line))
    try:
        stoker.split(source, into, **limit)
    finally:
        sys.settrace(before)


if __name__ == "__main__":
    last = int(sys.argv[4])
    traced(
        *sys.argv[1:3], json.loads(sys.argv[3]), lambda n: os.kill(os.getpid(), signal.SIGKILL) if n == last else None
    )
