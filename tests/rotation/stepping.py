"""A death at any line of the protocol: a worker counts the lines of the stores that it goes through."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import Any

import stoker.stores.carousel
import stoker.stores.locks
import stoker.stores.rotation_store
import stoker.stores.shelf
from tests.datasets import Augmented

_MODULES = (stoker.stores.carousel, stoker.stores.locks, stoker.stores.rotation_store, stoker.stores.shelf)
_FILES = {module.__file__ for module in _MODULES}


class Stepping(Augmented):
    """Made in a worker, it has that worker killed at the ``line``-th line: once, which the file ``struck`` remembers.

    What was struck is written into that file.
    """

    def __init__(self, struck: str, line: int, n: int) -> None:
        super().__init__(n)
        self.struck, self.left = struck, line
        if not os.path.exists(struck):
            sys.settrace(self._called)

    def _called(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self._stepped if frame.f_code.co_filename in _FILES else None

    def _stepped(self, frame: FrameType, event: str, argument: Any) -> Any:
        self.left -= event == "line"
        if self.left == 0:
            try:
                fd = os.open(self.struck, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            except FileExistsError:
                sys.settrace(None)  # another was first
                return None
            os.write(fd, f"{frame.f_code.co_name}:{frame.f_lineno}".encode())
            os.kill(os.getpid(), signal.SIGKILL)
        return self._stepped
