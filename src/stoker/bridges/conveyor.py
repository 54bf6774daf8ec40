"""The conveyor: a thread that moves batches to their device ahead of the consumer, so many at most."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from stoker.interrupts import Background, Bell, Hand

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
    """Calls ``pull`` in a thread of its own and keeps results ready, in order, of a total weight of up to ``most``.

    The two sides share no lock, since the consumer may be interrupted anywhere: each writes numbers that the other only
    reads, and rings a bell.

    Args:
        pull: Gives the next one, with all that is to be done to it; None if it was told to stop.
        wake: Makes a ``pull`` that blocks return None.
        most: Weight of results that are ready or being made at the same time.
        weight: Of a result: 1, or 0 if it takes no room on the device.
        is_left: Whether the consumer has to finish a result itself: nothing else is made before it has.
    """

    def __init__(
        self,
        pull: Callable[[], T | None],
        wake: Callable[[], None],
        most: int,
        weight: Callable[[T], int],
        is_left: Callable[[T], bool],
    ) -> None:
        self._pull = pull
        self._wake = wake
        self._most = most
        self._ready: dict[int, T | BaseException | None] = {}
        self._weight, self._is_left = weight, is_left
        self._made = self._weight_made = self._left_made = 0  # by the thread
        self._taken = self._weight_taken = self._left_taken = self._left_finished = 0  # by the consumer
        self._news, self._room = Bell(), Bell()
        self._stopping = False
        self._then: Callable[[], None] | None = None
        self._background = Background(self._run, "stoker-conveyor")

    @property
    def is_moving(self) -> bool:
        """False once it was told to stop, or an error of ``pull`` was given."""
        return not self._stopping

    def start(self) -> None:
        """By whoever holds it already, and so can stop it if Ctrl-C comes in between."""
        self._background.start()

    def take(self, hand: Hand[T]) -> None:
        """Puts the next one into a hand that is empty; nothing if it was told to stop meanwhile.

        Raises:
            BaseException: An error of ``pull`` in its turn, after which there are no more.
        """
        self.finished()  # whoever was interrupted on the way to saying so comes here next
        while self._taken == self._made and not self._stopping:
            self._news.wait()
        if self._stopping:
            return
        found = self._ready[self._taken]
        if isinstance(found, BaseException):
            self._ready[self._taken], self._stopping = None, True
            try:
                raise found
            finally:
                del found  # it holds this frame
        assert found is not None
        weight, left = self._weight_taken + self._weight(found), self._left_taken + self._is_left(found)
        # At once, so that an interrupt comes before or after it.
        hand.held, self._ready[self._taken], self._taken = found, None, self._taken + 1
        self._weight_taken, self._left_taken = weight, left
        self._room.ring()

    def finished(self) -> None:
        """The consumer has finished what was left to it."""
        if self._left_finished != self._left_taken:
            self._left_finished = self._left_taken
            self._room.ring()

    def interrupt(self) -> None:
        """From any thread: ends it soon, and a ``take`` that waits at once."""
        self._stopping = True
        self._room.ring()
        self._news.ring()

    def is_here(self) -> bool:
        """Whether it is its thread that asks."""
        return self._background.is_here()

    def leave(self, then: Callable[[], None]) -> None:
        """By its own thread: ends it soon, and does that as its last."""
        self._then = then
        self.interrupt()

    def stop(self) -> None:
        """Ends the thread, after what it is just moving, and drops what is ready."""
        self.interrupt()
        self._wake()
        self._background.join()
        self._ready.clear()

    def _run(self) -> None:
        try:
            while self._has_room():
                try:
                    found: T | BaseException | None = self._pull()
                except BaseException as error:
                    found = error
                if found is None:  # whoever pulls was told to stop: nothing will come
                    self.interrupt()
                    return
                self._ready[self._made] = found
                if not isinstance(found, BaseException):
                    self._weight_made += self._weight(found)
                    self._left_made += self._is_left(found)
                self._made += 1
                self._news.ring()
                if isinstance(found, BaseException):
                    return
                del found
        finally:
            if self._then is not None:
                self._then()

    def _has_room(self) -> bool:
        """Waits until another one may be made; False if none is to be made any more."""
        while self._is_full() and not self._stopping:
            self._room.wait()
        for number in [number for number in self._ready if number < self._taken]:
            del self._ready[number]
        return not self._stopping

    def _is_full(self) -> bool:
        return self._weight_made - self._weight_taken >= self._most or self._left_made > self._left_finished
