"""The functions that users give to make loaders with: called, checked, and what they made is closed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

MakeLoader = Callable[[], Any]


class Makers:
    """Makes loaders for one assert.

    Args:
        needed: Attributes that a loader must have.
    """

    def __init__(self, *needed: str) -> None:
        self._needed = ("__iter__", *needed)
        self._made: list[Any] = []  # kept, so that no two have the same id

    @contextmanager
    def loader(self, make: MakeLoader, name: str = "make_loader") -> Iterator[Any]:
        """A new loader, closed at the end.

        Raises:
            TypeError: ``make`` is no function, or makes no loader.
            ValueError: It gives the same loader again.
        """
        if not callable(make):
            raise TypeError(f"{name} is {make!r}: pass a function that makes a loader, as in lambda: Loader(...)")
        made = make()
        for attribute in self._needed:
            if not hasattr(made, attribute):
                raise TypeError(
                    f"{name}() gave a {type(made).__name__}, which has no {attribute}: return a stoker.Loader, "
                    f"or something that has its methods"
                )
        if any(made is other for other in self._made):
            raise ValueError(f"{name}() gave the same loader twice: make a new one at each call")
        self._made.append(made)
        try:
            yield made
        finally:
            if hasattr(made, "close"):
                made.close()
