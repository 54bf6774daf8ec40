"""Looking ahead in a sampler, in such a way that nobody sees it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import stoker
from stoker.torch.draws import Generators, current, set_all
from stoker.torch.sampling import Pass

_BRIEF_S = 1.0  # that interrupts wait for a sampler: who waits for one that hangs can still interrupt it


class Lookahead:
    """The indices of a pass, with their numbers.

    Torch asks a sampler for indices in step with the batches that are taken, and what the sampler draws from random
    generators of the loader then is there for the next epoch to see, also if this one is broken off. So ``come_to``
    asks for as many as torch has asked for by then. Where more are wanted, for bundles, the generators are put back
    to where they were, and what was drawn shows when torch would have drawn it.

    While the sampler is asked, interrupts are put off: one that comes up in a sampler that is a generator ends it.

    Args:
        indices: The pass.
        generators: Those that belong to the loader.
        note: Is called with the number of each index as soon as it was asked for.
    """

    def __init__(self, indices: Pass, generators: Generators, note: Callable[[int], None]) -> None:
        self._indices, self._generators, self._note = indices, generators, note
        self._start = self._serial = indices.pulled  # the number of the first there was, and of the first that is ready
        self._ready: deque[Any] = deque()
        self._has_ended = False
        self._drawn: deque[tuple[int, list[Any]]] = deque()  # when so many are asked for, generators are there

    def first(self, wanted: int = 1) -> tuple[int, Any] | None:
        """The next index with its number; None if there is none any more. The same until it is dropped.

        ``wanted``: how many will be asked for, this one included.
        """
        if not self._ready and not self._has_ended:
            with stoker.put_off(_BRIEF_S):
                self._look_ahead(wanted)
        return (self._serial, self._ready[0]) if self._ready else None

    def drop(self, serial: int) -> None:
        """Somebody has that one."""
        if serial == self._serial:
            self._serial = serial + 1
            self._ready.popleft()

    def come_to(self, asked: int) -> None:
        """Asks for so many in all."""
        if not self._drawn and (self._asked >= asked or self._has_ended):
            return
        with stoker.put_off(_BRIEF_S):
            while self._drawn and self._drawn[0][0] <= asked:
                set_all(self._generators, self._drawn.popleft()[1])
            while self._asked < asked and not self._has_ended:
                self._ask()

    @property
    def _asked(self) -> int:
        """Indices that were asked for, the one that there was none any more included."""
        return self._serial + len(self._ready) - self._start + self._has_ended

    def _look_ahead(self, wanted: int) -> None:
        if not self._generators:
            self._ask(wanted)
            return
        seen = current(self._generators)
        if self._drawn:
            set_all(self._generators, self._drawn[-1][1])
        before = current(self._generators)
        self._ask()
        after = current(self._generators)
        if any(not one.equal(other) for one, other in zip(before, after, strict=True)):
            self._drawn.append((self._asked, after))
        set_all(self._generators, seen)

    def _ask(self, wanted: int = 1) -> None:
        before, count = len(self._ready), 1 if self._indices.has_state else wanted
        self._indices.pull_into(self._ready, count)
        self._has_ended = len(self._ready) < before + count
        self._indices.pulled = self._serial + len(self._ready)
        if len(self._ready) > before:
            self._note(self._indices.pulled - 1)
