"""Systems other than Linux: what is said where something needs more than they have.

Whether a call is there is asked for by its name, where it is used. What is asked for here are the few things that have
the same name elsewhere and mean something else.
"""

from __future__ import annotations

import sys
from typing import Any

_NAME = sys.platform
IS_LINUX: bool = _NAME == "linux"
IS_WINDOWS: bool = _NAME == "win32"


def not_here(what: str, remedy: str) -> NotImplementedError:
    """The error that says so."""
    return NotImplementedError(f"{what} does not work on this system ({_NAME}): {remedy}")


def check_processes(workers: Any) -> None:
    """
    Raises:
        NotImplementedError: The system is one where no workers of this kind can be started.
    """
    if IS_WINDOWS:
        raise not_here(type(workers).__name__, "pass workers=stoker.Threads(n), or workers=0 for none")
