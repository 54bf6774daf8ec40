"""Modules that are imported late, in the middle of a batch: somebody wants to know as soon as one is there."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
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
        sys.meta_path.insert(0, self)

    def stop(self) -> None:
        with contextlib.suppress(ValueError):
            sys.meta_path.remove(self)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self._name:
            return None
        for finder in self._others():
            spec: Any = finder.find_spec(name, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader, self._imported)
                return spec  # type: ignore[no-any-return]
        return None

    def _others(self) -> list[Any]:
        """Those that come after it: the others have been asked, and may be watches, too."""
        finders = list(sys.meta_path)
        first = finders.index(self) + 1 if self in finders else 0
        return [finder for finder in finders[first:] if hasattr(finder, "find_spec")]

    def _imported(self) -> None:
        if self in sys.meta_path:  # else it was stopped in the meantime
            self._then()


class _Loader:
    """Loads as the true loader does, and has gone when the module's own code begins to run."""

    def __init__(self, loader: Any, then: Callable[[], None]) -> None:
        self._loader, self._then = loader, then

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
        self._loader.exec_module(module)
        self._then()
