"""The conveyor: a thread that moves batches to their device ahead of the consumer, so many at most."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class InFlight:
    """What a ``to_device`` of yours may return if its copy goes on in the background.

    Args:
        batch: On the device, or on its way there.
        finish: Blocks until the copy is done. Only then is the batch handed over, and its memory used again.

    Example:
        >>> import stoker
        >>> def to_device(batch):
        ...     return stoker.InFlight(batch * 2, finish=lambda: None)
        >>> with stoker.Loader(range(4), 2, to_device=to_device) as loader:
        ...     [batch.tolist() for batch in loader]
        [[0, 2], [4, 6]]
    """

    batch: Any
    finish: Callable[[], None]


def landed(moved: Any) -> Any:
    """The batch itself, when it has arrived."""
    if not isinstance(moved, InFlight):
        return moved
    moved.finish()
    return moved.batch


class Conveyor(Generic[T]):
    """Calls ``pull`` in a thread of its own and keeps up to ``most`` results ready, in order.

    Args:
        pull: Gives the next one, with all that is to be done to it; None if it was told to stop.
        wake: Makes a ``pull`` that blocks return None.
        most: Results that are ready or being made at the same time.
    """

    def __init__(self, pull: Callable[[], T | None], wake: Callable[[], None], most: int) -> None:
        self._pull = pull
        self._wake = wake
        self._most = most
        self._ready: deque[T | BaseException] = deque()
        self._changed = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="stoker-conveyor", daemon=True)

    def start(self) -> None:
        """By whoever holds it already, and so can stop it if Ctrl-C comes in between."""
        self._thread.start()

    def take(self) -> T:
        """The next one; an error of ``pull`` in its turn, after which there are no more."""
        with self._changed:
            while not self._ready:
                self._changed.wait()
            found = self._ready.popleft()
            self._changed.notify()
        if isinstance(found, BaseException):
            raise found
        return found

    def stop(self) -> None:
        """Ends the thread, after what it is just moving, and drops what is ready."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._wake()
        if self._thread.ident is not None:
            self._thread.join()
        self._ready.clear()

    def _run(self) -> None:
        while self._has_room():
            try:
                found: T | BaseException | None = self._pull()
            except BaseException as error:
                found = error
            if found is None:
                return
            with self._changed:
                self._ready.append(found)
                self._changed.notify()
            if isinstance(found, BaseException):
                return
            del found

    def _has_room(self) -> bool:
        """Waits until another one may be made; False if none is to be made any more."""
        with self._changed:
            while len(self._ready) >= self._most and not self._stopping:
                self._changed.wait()
            return not self._stopping
