"""Open files: those that a worker keeps, so that the next part of one goes on where the last part ended."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from stoker.sources.files.parts import Part


OPEN_BYTES = 40 << 20  # of memory that the open files of a worker may take


class Opened(Protocol):
    """An open file."""

    @property
    def held(self) -> int:
        """The bytes of memory that it takes, about."""

    def skipped(self, row: int) -> float:
        """How many rows would be read in vain if it went on from where it is to that one."""

    def skipped_afresh(self, row: int) -> float:
        """The same, of one that was just opened."""

    def again(self) -> Opened:
        """The same file, opened once more at its beginning."""

    def close(self) -> None:
        """Closes it."""


class OpenFiles:
    """The files that were read last. Each thread has its own; another process begins with none.

    Args:
        most: How many are kept.
        most_bytes: How much memory they may take, if they are several.
    """

    def __init__(self, most: int, most_bytes: int = OPEN_BYTES) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._own = threading.local()

    def __reduce__(self) -> tuple[Any, ...]:
        return OpenFiles, (self._most, self._most_bytes)

    @contextmanager
    def lend(self, part: Part, open_file: Callable[[Part], Any]) -> Iterator[Any]:
        """The file of a part, from which least is to be skipped. One that fails is closed, and not kept."""
        key = part.path, part.size, part.stamp
        opened = self._nearest(key, part.begin) or open_file(part)
        try:
            yield opened
        except BaseException:
            opened.close()
            raise
        kept = self._kept()
        kept.append((key, opened))
        while len(kept) > self._most or (len(kept) > 1 and sum(one.held for _, one in kept) > self._most_bytes):
            kept.pop(0)[1].close()

    def close(self) -> None:
        """Closes those of this thread; those of others end with their threads."""
        kept = self._kept()
        while kept:
            kept.pop()[1].close()

    def _nearest(self, key: tuple[str, int, int], row: int) -> Opened | None:
        kept = self._kept()
        found = [(opened.skipped(row), at) for at, (other, opened) in enumerate(kept) if other == key]
        if not found:
            return None
        skipped, at = min(found)
        nearest = kept[at][1]
        if skipped > nearest.skipped_afresh(row):
            return nearest.again()  # the other one may be needed again where it is
        return kept.pop(at)[1]

    def _kept(self) -> list[tuple[tuple[str, int, int], Opened]]:
        kept: list[tuple[tuple[str, int, int], Opened]] = self._own.__dict__.setdefault("kept", [])
        return kept
