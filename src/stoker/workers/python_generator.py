"""The generator behind the functions of ``random``, which is put aside for a batch and put back after it.

``random.getstate`` and ``setstate`` make a tuple of 625 numbers and read it again, in some 20 microseconds. Here the
same numbers are copied as they lie in memory, in one, where they lie as CPython has them.
"""

from __future__ import annotations

import ctypes
import random
import sys
from typing import Any

_WORDS = 625  # of 4 bytes: a position, and the 624 words of MT19937 that it is among


class PythonGenerator:
    """``put_aside`` is always followed by ``put_back``, also by whoever was interrupted in it."""

    def __init__(self) -> None:
        self._singleton: Any = random.getstate.__self__ if hasattr(random.getstate, "__self__") else None
        self._memory = _memory_of(self._singleton)
        self._saved: tuple[bytes, Any] | None = None
        self._state: Any = None  # all of it, where there is no quick way

    def put_aside(self) -> None:
        """From now on, what is drawn and seeded is not the user's."""
        is_singletons = getattr(random.getstate, "__self__", self) is self._singleton  # else threads have their own
        if self._memory is not None and is_singletons:
            self._saved = self._memory.tobytes(), self._singleton.gauss_next
        else:
            self._state = random.getstate()

    def put_back(self) -> None:
        saved, state = self._saved, self._state
        if saved is not None and self._memory is not None:
            self._memory[:], self._singleton.gauss_next = saved
            self._saved = None
        if state is not None:
            random.setstate(state)
            self._state = None


def _memory_of(generator: Any) -> memoryview | None:
    """Its state as it lies in memory; None where it is not known, or not as it is known."""
    room = type(generator).__basicsize__ - object.__basicsize__
    if type(generator) is not random.Random or sys.implementation.name != "cpython" or room < 4 * _WORDS:
        return None
    raw: Any = (ctypes.c_char * (4 * _WORDS)).from_address(id(generator) + object.__basicsize__)
    memory = memoryview(raw).cast("B")
    _, (*words, position), _ = generator.getstate()
    is_as_known = memory.cast("I").tolist() == [position, *words]
    return memory if is_as_known else None
