"""Parts of a batch of which it shows only while they are written whether their samples fit together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn


class Unfit(Exception):
    """No error: a part has given way to something else. The batch is laid out again as it is now."""


class Tentative:
    """A part of a batch that is not checked before it is written: that would take longer than writing it.

    Args:
        otherwise: Gives what takes its place if it cannot be written.
    """

    __slots__ = ("_otherwise", "tree")

    def __init__(self, otherwise: Callable[[], Any]) -> None:
        self.tree: Any = None
        self._otherwise = otherwise

    def give_way(self) -> NoReturn:
        self.tree = self._otherwise()
        raise Unfit
