"""A device that is not there: its copies are slow and go on in the background, reading the batch's own memory."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np

import stoker


class FakeDevice:
    """``to_device`` begins a copy and returns at once; a thread copies bit by bit, straight from the slot."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.begun = 0
        self.ended = 0
        self.handed_over = 0
        self.most_ahead = 0
        self.threads: set[str] = set()
        self._changed = threading.Condition()

    def to_device(self, batch: np.ndarray, device: Any) -> stoker.InFlight:
        assert device is self
        self.threads.add(threading.current_thread().name)
        with self._changed:
            self.begun += 1
            self.most_ahead = max(self.most_ahead, self.begun - self.handed_over)
            self._changed.notify_all()
        copy = np.zeros_like(batch)
        # The address alone: what keeps the memory from being used again must be the loader, not this reference.
        address, nbytes = batch.ctypes.data, batch.nbytes
        thread = threading.Thread(target=self._copy, args=(copy, address, nbytes))
        thread.start()
        return stoker.InFlight(copy, finish=thread.join)

    def wait_for(self, begun: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.begun >= begun, timeout=20)

    def wait_for_end_of(self, copies: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.ended >= copies, timeout=20)

    def _copy(self, copy: np.ndarray, address: int, nbytes: int) -> None:
        import ctypes

        parts = 8
        for part in range(parts):
            time.sleep(self.seconds / parts)
            begin, end = part * nbytes // parts, (part + 1) * nbytes // parts
            ctypes.memmove(copy.ctypes.data + begin, address + begin, end - begin)
        with self._changed:
            self.ended += 1
            self._changed.notify_all()
