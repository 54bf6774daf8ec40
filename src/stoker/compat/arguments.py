"""Arguments that several fronts have: checks, which say what to pass instead, and what is meant where none is given.

``stoker.counts`` has one, too, but is not public, and fronts import the public face only.
"""

from __future__ import annotations

import operator
import os
from typing import Any


def checked_count(name: str, value: Any, least: int = 1) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name}={value!r}: pass a whole number of {least} or more")
    if operator.index(value) < least:
        raise ValueError(f"{name}={value!r}: pass a whole number of {least} or more")
    return operator.index(value)


def check_flag(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise TypeError(f"{name}={value!r}: pass True or False")


def check_callable(name: str, value: Any) -> None:
    if not callable(value):
        raise TypeError(f"{name}={value!r} cannot be called: pass a function or a class")


def own_cores() -> int:
    """Those that this process may run on, where the system tells."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
