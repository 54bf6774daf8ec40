"""The generator behind the functions of ``numpy.random``, which is put aside for a batch and put back after it.

``np.random.get_state`` and ``set_state`` do that in 65 microseconds, a third of what a small batch costs. Here another
bit generator takes the place of the user's, in two. The user's is then untouched, but numpy forgets the second half of
a pair of normal numbers, which its functions keep beside the bit generator. To see whether there is one, a normal
number is drawn: if the bit generator has not moved, it was that half; else the bit generator is moved back.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_STATE_BYTES = 625 * 4  # of MT19937: 624 words, and a position among them


class NumpyGenerator:
    """``put_aside`` is always followed by ``put_back``, also by whoever was interrupted in it."""

    def __init__(self) -> None:
        # Not at import, where a script called secrets.py is in the way.
        self._numpy: Any = np.random  # whose type hints know its bit generator only from NumPy 2.5 on
        self._singleton: Any = np.random.mtrand._rand
        self._own = np.random.MT19937(0)
        self._users: Any = None  # the bit generator that was there last
        self._memory: Array | None = None  # its state, if it is known how that lies in memory
        self._is_aside = False
        self._half: list[float] = []  # of a pair of normal numbers
        self._state: Any = None  # all of it, where there is no quick way

    def put_aside(self) -> None:
        """From now on, what is drawn and seeded is not the user's."""
        if (
            getattr(np.random.get_state, "__self__", None) is not self._singleton
        ):  # threads have generators of their own
            self._state = np.random.get_state(legacy=False)
            return
        users = self._numpy.get_bit_generator()
        if users is not self._users:
            self._users, self._memory = users, _memory_of(users)
        self._is_aside = True
        if self._memory is None:
            self._state = np.random.get_state(legacy=False)
        else:
            self._look_for_half(self._memory)
        self._numpy.set_bit_generator(self._own)

    def put_back(self) -> None:
        if self._is_aside:
            self._numpy.set_bit_generator(self._users)
            self._is_aside = False
        if self._half:
            state: Any = np.random.get_state(legacy=False)
            self._state = {**state, "has_gauss": 1, "gauss": self._half.pop()}
        if self._state is not None:
            np.random.set_state(self._state)
            self._state = None

    def _look_for_half(self, memory: Array) -> None:
        before = memory.tobytes()
        try:
            self._half.extend(map(self._singleton.standard_normal, (None,)))  # at once: no interrupt comes in between
        finally:
            if memory.tobytes() != before:
                memory[...] = np.frombuffer(before, np.uint32)
                self._half.clear()


def _memory_of(generator: Any) -> Array | None:
    """The state of a bit generator as it lies in memory; None where it is not known, or not as it is known."""
    if type(generator) is not np.random.MT19937:
        return None
    raw: Any = (ctypes.c_char * _STATE_BYTES).from_address(generator.ctypes.state_address)
    memory = np.frombuffer(raw, np.uint32)
    state: Any = generator.state["state"]
    is_as_known = np.array_equal(memory[:-1], state["key"]) and memory[-1] == state["pos"]
    return memory if is_as_known else None
