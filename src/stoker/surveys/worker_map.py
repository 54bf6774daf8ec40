"""A map in workers, for what must be known before an epoch. Whoever is interrupted goes on where it was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from stoker.errors import ClosedError
from stoker.sources import Retry
from stoker.streams import Stream, stream
from stoker.workers import Workers

T = TypeVar("T")


@dataclass
class Crew:
    """Who does the surveys of one loader.

    Args:
        workers: As the loader has them.
        init: Called in each worker before all else.
        retry: Of what cannot be read.
        is_closed: The loader was closed, so nothing is begun any more.
    """

    workers: Workers
    init: Callable[[], object] | None = None
    retry: Retry | None = None
    is_closed: bool = False


class WorkerMap(Generic[T]):
    """Does some work on items, several at a time, in workers.

    Args:
        work: Gets a list of items, and gives a result.
        together: Items that a worker gets in one go.
        crew: Who does it.
    """

    def __init__(self, work: Callable[[list[Any]], T], together: int, crew: Crew) -> None:
        self._work, self._together, self._crew = work, together, crew
        self._key = ""
        self._stream: Stream[Any] | None = None
        self._results: list[T] = []

    def results(self, key: str, item: Callable[[int], Any], count: int, keep: Callable[[T], T]) -> list[T]:
        """The results, in order.

        Args:
            key: Of the items: after an interrupt, the same go on, and others begin anew.
            item: Gives the one with that number, of
            count: in all.
            keep: Makes a copy of a result, whose memory is wanted for others.

        Raises:
            ClosedError: It was closed, perhaps by another thread or a signal's handler.
        """
        if not count:
            return []
        running = self._stream
        if running is None or key != self._key:
            self.close()
            some = _Some(item, count, self._together)
            self._key, self._results = key, []
            crew = self._crew
            self._stream = running = stream(
                self._work, some, workers=crew.workers, init=crew.init, retry=crew.retry or 0
            )
        if self._crew.is_closed:  # whoever has closed it may have found no stream to close
            self.close()
            raise ClosedError("this loader was closed while its files were looked at: make a new one")
        for result in running:
            self._results.append(keep(result))
        self.close()
        is_whole = len(self._results) == -(-count // self._together)
        return self._results if is_whole else self.results(key, item, count, keep)  # one got lost on its way here

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
        self._stream = None


class _Some:
    """Items, some at a time. No generator, which an interrupt would end, and none is taken out of an iterator: whoever
    is interrupted on the way begins with the same ones again."""

    def __init__(self, item: Callable[[int], Any], count: int, together: int) -> None:
        self._item, self._count, self._together = item, count, together
        self._next = 0

    def __iter__(self) -> _Some:
        return self

    def __next__(self) -> list[Any]:
        end = min(self._next + self._together, self._count)
        if self._next >= end:
            raise StopIteration
        found = [self._item(number) for number in range(self._next, end)]
        self._next = end
        return found
