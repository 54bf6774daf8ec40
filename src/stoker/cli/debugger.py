"""Python's debugger: opened where something has failed, and left again."""

from __future__ import annotations

import bdb
import traceback

from stoker.cli.frames import trimmed


def debug(error: BaseException) -> None:
    import pdb  # not before: from Python 3.14 on, it imports asyncio

    pdb.post_mortem(trimmed(error))


def has_left_debugger(error: BaseException) -> bool:
    """Whether it comes of ``q`` at a ``breakpoint()`` of the user's: from Python 3.14 on, a SystemExit by pdb."""
    if not isinstance(error, SystemExit):
        return isinstance(error, bdb.BdbQuit)
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return bool(frames) and frames[-1].f_globals.get("__name__") == "pdb"
