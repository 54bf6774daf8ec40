"""A death at any line of the protocol: a worker counts the lines of the rotation that it goes through."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from stoker.stores import claims, membership, rotation_cells, rotation_file, rotation_store, shared_samples
from tests.datasets import Augmented

_STORE = (claims, rotation_cells, rotation_file, membership, rotation_store, shared_samples)
_FILES = {module.__file__ for module in _STORE}


def die_at(line: int, may_die: Callable[[str], bool]) -> None:
    """From now on, counts lines in this thread; at the ``line``-th, if ``may_die(where)``, it is the last."""
    left = line

    def called(frame: FrameType, event: str, argument: Any) -> Any:
        return stepped if frame.f_code.co_filename in _FILES else None

    def stepped(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal left
        left -= event == "line"
        if left == 0 and may_die(f"{frame.f_code.co_name}:{frame.f_lineno}"):
            os.kill(os.getpid(), signal.SIGKILL)
        return stepped

    sys.settrace(called)


class Stepping(Augmented):
    """Made in a worker, it has that worker killed at the ``line``-th line: once, which the file ``struck`` remembers.

    What was struck is written into that file.
    """

    def __init__(self, struck: str, line: int, n: int) -> None:
        super().__init__(n)
        self.struck = struck
        if not os.path.exists(struck):
            die_at(line, self._strike)

    def _strike(self, where: str) -> bool:
        try:
            fd = os.open(self.struck, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            return False  # another was first
        os.write(fd, where.encode())
        os.close(fd)
        return True
