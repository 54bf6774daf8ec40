"""Modules that are imported late, in the middle of a batch: somebody wants to know as soon as one is there, or to put
right what the import of any has changed."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class ImportWatch:
    """From ``start`` to ``stop``, calls ``then`` whenever the module of that name has just been imported.

    It stands first in ``sys.meta_path``, has the others find the module, and stands in for its loader while that runs.
    ``then`` is called in the thread that imports, before the import statement is done; it must not raise.
    """

    def __init__(self, name: str, then: Callable[[], None]) -> None:
        self._name, self._then = name, then

    def start(self) -> None:
        _put_first(self)

    def stop(self) -> None:
        _take_out(self)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return _found(self, self._within, name, path, target) if name == self._name else None

    @contextlib.contextmanager
    def _within(self) -> Iterator[None]:
        yield
        if self in sys.meta_path:  # else it was stopped in the meantime
            self._then()


class ImportBracket:
    """From ``start`` to ``stop``, the import of any module runs within ``around``, where ``applies`` says so.

    Modules that a module imports belong to it: they have no bracket of their own.
    """

    def __init__(self, around: Callable[[], AbstractContextManager[None]], applies: Callable[[], bool]) -> None:
        self._around, self._applies = around, applies
        self._importing = threading.local()

    def start(self) -> None:
        _put_first(self)

    def stop(self) -> None:
        _take_out(self)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if getattr(self._importing, "is_within", False) or not self._applies():
            return None
        return _found(self, self._within, name, path, target)

    @contextlib.contextmanager
    def _within(self) -> Iterator[None]:
        self._importing.is_within = True
        try:
            with self._around():
                yield
        finally:
            self._importing.is_within = False


def _put_first(finder: Any) -> None:
    """In a new list: another thread may just be walking along the old one, and would miss a finder."""
    sys.meta_path = [finder, *sys.meta_path]


def _take_out(finder: Any) -> None:
    sys.meta_path = [other for other in sys.meta_path if other is not finder]


def _found(
    finder: Any,
    around: Callable[[], AbstractContextManager[None]],
    name: str,
    path: Sequence[str] | None,
    target: ModuleType | None,
) -> ModuleSpec | None:
    """What those behind ``finder`` find, to be loaded within ``around``."""
    finders = list(sys.meta_path)  # those before it have been asked, and may be watches, too
    first = finders.index(finder) + 1 if finder in finders else 0
    for other in finders[first:]:
        spec: Any = other.find_spec(name, path, target) if hasattr(other, "find_spec") else None
        if spec is not None:
            if hasattr(spec.loader, "exec_module"):
                spec.loader = _Loader(spec.loader, around)
            return spec  # type: ignore[no-any-return]
    return None


class _Loader:
    """Loads as the true loader does, and has gone when the module's own code begins to run."""

    def __init__(self, loader: Any, around: Callable[[], AbstractContextManager[None]]) -> None:
        self._loader, self._around = loader, around

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        create = getattr(self._loader, "create_module", None)
        made: ModuleType | None = create(spec) if create is not None else None
        return made

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        with self._around():
            self._loader.exec_module(module)
