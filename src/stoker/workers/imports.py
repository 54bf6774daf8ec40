"""No loader starts while a process of ours imports modules or unpacks the dataset: it would go on without end.

To find a dataset's class a worker imports its module. If that module starts a loader when it is imported, that loader's
workers import the module, which starts a loader, and so on.
"""

from __future__ import annotations

import contextlib
import linecache
import os
import sys
from collections.abc import Iterator
from types import FrameType

from stoker.errors import StartError

_MACHINERY = "<frozen importlib._bootstrap"
_DEEPEST = 4  # workers of workers of ...: nobody means to have more


class _Process:
    """What this process is: none of ours, unless it says so."""

    depth = 0  # of workers of workers
    unpacking = False


def depth_of_workers() -> int:
    """Of those that this process starts: 1, if it is no worker itself."""
    return _Process.depth + 1


def become_maker(depth: int) -> None:
    """This process imports modules for workers, and is none."""
    _Process.depth, _Process.unpacking = depth, True


def become_worker(depth: int) -> None:
    _Process.depth, _Process.unpacking = depth, False


@contextlib.contextmanager
def unpacking() -> Iterator[None]:
    """In a worker: the dataset is unpickled, and modules imported for it."""
    _Process.unpacking = True
    try:
        yield
    finally:
        _Process.unpacking = False


def check_not_importing(what: str) -> None:
    """Raises ``StartError`` if a process of ours is about to start a loader while it imports or unpacks."""
    if not _Process.depth:
        return
    frame = _module_being_imported(sys._getframe(1))
    if frame is not None or _Process.unpacking:
        raise StartError(
            f"a {what} was started while a worker {_where(frame)}. Workers import the module of a dataset to find its "
            f"class, so this would start workers of workers without end. {_remedy(frame)}"
        )
    if _Process.depth >= _DEEPEST:
        raise StartError(
            f"a {what} was started in a worker of a worker ..., {_Process.depth} deep: the dataset's own code starts "
            f"one in each worker, which would not end. Start it in the training process, or pass workers=0 to it"
        )


def _module_being_imported(frame: FrameType | None) -> FrameType | None:
    """The frame of the innermost module that is being imported, if any is."""
    module = None
    while frame is not None:
        if module is None and frame.f_code.co_name == "<module>":
            module = frame
        elif module is not None and frame.f_code.co_filename.startswith(_MACHINERY):
            return module
        frame = frame.f_back
    return None


def _where(frame: FrameType | None) -> str:
    if frame is None:
        return "unpacked its dataset"
    file, line = frame.f_code.co_filename, frame.f_lineno
    code = linecache.getline(file, line).strip()
    return f"imported the module {frame.f_globals.get('__name__')!r} ({file}, line {line}: `{code}`)"


def _remedy(frame: FrameType | None) -> str:
    if frame is None:
        return "Start it when a sample is asked for, in __getitem__"
    file = frame.f_code.co_filename
    name = frame.f_globals.get("__name__", "")
    if name in sys.stdlib_module_names:
        return f"The file has the name of the standard library's module {name!r}, and was imported for it: rename it"
    return (
        f'Put what starts it under `if __name__ == "__main__":` in {os.path.basename(file)}, or into a function that '
        f"your program calls"
    )
