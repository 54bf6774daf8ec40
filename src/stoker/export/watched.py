"""The loaders that are told of, by name. None is kept alive for it."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import stoker


class HasStats(Protocol):
    """A ``Loader`` or ``Stream``."""

    def stats(self) -> stoker.Stats: ...


class Watched:
    """Loaders by name."""

    def __init__(self) -> None:
        self._loaders: dict[str, weakref.ref[Any]] = {}

    def add(self, loaders: Mapping[str, HasStats]) -> None:
        for name, loader in loaders.items():
            if not callable(getattr(loader, "stats", None)):
                raise TypeError(f"{name}={loader!r}: pass a stoker.Loader or a stream")
            if self._alive(name) not in (None, loader):
                raise ValueError(f"{name}={loader!r}: there is another loader of that name; choose a name for each")
        self._loaders |= {name: weakref.ref(loader) for name, loader in loaders.items()}

    def remove(self, name: str) -> None:
        """Its figures are told no more."""
        self._loaders.pop(name, None)

    def clear(self) -> None:
        self._loaders = {}

    def stats(self) -> Iterator[tuple[str, stoker.Stats]]:
        """Of those that are still there. From any thread."""
        for name in list(self._loaders):
            loader = self._alive(name)
            if loader is not None:
                yield name, loader.stats()

    def _alive(self, name: str) -> Any:
        found = self._loaders.get(name)
        return None if found is None else found()
