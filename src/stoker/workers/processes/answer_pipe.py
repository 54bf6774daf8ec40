"""The pipe that all workers of a loader write their answers into, as the consumer has it."""

from __future__ import annotations

import os
import select
import threading

from stoker.interrupts import pieces
from stoker.memory import pipe
from stoker.workers.processes.records import SAID_BYTES, Said, Say, unpack_said

_AT_ONCE = 64 * SAID_BYTES  # more are read in a second go


class AnswerPipe:
    """Used by the consumer's thread, but for ``wake``. ``writing`` is the end that workers get."""

    def __init__(self) -> None:
        self._reading, self.writing = pipe()
        os.set_blocking(self._reading, False)
        self._waking = threading.RLock()
        self._is_closed = False
        self._watch([])

    def wait(self, others: list[int], timeout: float | None) -> list[int]:
        """Until there is something to read, here or from other descriptors; which of those, if any."""
        if others != self._watched:
            self._watch(others)
        for seconds in pieces(timeout):
            if ready := self._poll.poll(1000 * seconds):
                return [fd for fd, _ in ready if fd != self._reading]
        return []

    def read(self) -> list[Said]:
        """All that has been said so far."""
        said: list[Said] = []
        try:
            while len(records := os.read(self._reading, _AT_ONCE)) == _AT_ONCE:
                said.extend(unpack_said(records))
        except BlockingIOError:
            return said
        return [*said, *unpack_said(records)] if said else unpack_said(records)

    def wake(self) -> None:
        """From another thread: whoever waits does so no longer."""
        with self._waking:  # a descriptor that was closed may be somebody else's by now
            if not self._is_closed:
                os.write(self.writing, Said(Say.NOTHING, 0).pack())

    def close(self) -> None:
        """Once. Without a second try: somebody else may have the numbers of these descriptors by then."""
        with self._waking:
            self._is_closed = True
            try:
                os.close(self._reading)
            finally:
                os.close(self.writing)

    def _watch(self, others: list[int]) -> None:
        self._watched = others
        self._poll = select.poll()
        for fd in (self._reading, *others):
            self._poll.register(fd, select.POLLIN)
