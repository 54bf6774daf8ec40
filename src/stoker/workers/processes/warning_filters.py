"""The warnings filters of the consumer's process, in a form that travels, so that workers warn as it does."""

from __future__ import annotations

import functools
import re
import sys
import warnings
from dataclasses import dataclass
from typing import Any

_Words = re.Pattern[str] | str | None
_WORDS = (re.Pattern, str, type(None))  # what one can ask whether something is one


@dataclass(frozen=True)
class WarningFilter:
    """One of ``warnings.filters``, its category by name: to unpickle it could be to import a framework."""

    action: str
    message: _Words
    category_module: str
    category_name: str
    module: _Words
    line: int

    def as_python_has_it(self) -> tuple[Any, ...]:
        return self.action, self.message, self._category(), self.module, self.line

    def _category(self) -> type[Warning]:
        found: Any = sys.modules.get(self.category_module)
        try:
            found = functools.reduce(getattr, self.category_name.split("."), found)
        except AttributeError:
            found = None
        if isinstance(found, type) and issubclass(found, Warning):
            return found
        stand_in: Any = _ByName(self.category_name, (Warning,), {"__module__": self.category_module})
        return stand_in  # type: ignore[no-any-return]


class _ByName(type):
    """Of stand-ins for classes whose module is not loaded: they have those of their name as subclasses."""

    def __subclasscheck__(cls, other: type) -> bool:
        own = cls.__module__, cls.__name__
        return any((base.__module__, base.__qualname__) == own for base in other.__mro__)


@dataclass(frozen=True)
class WarningFilters:
    """All of them, first to last."""

    filters: tuple[WarningFilter, ...]

    @classmethod
    def here(cls) -> WarningFilters:
        return cls(
            tuple(
                WarningFilter(action, message, category.__module__, category.__qualname__, module, line)
                for action, message, category, module, line in warnings.filters
                if isinstance(message, _WORDS) and isinstance(category, type) and isinstance(module, _WORDS)
            )
        )

    def apply(self) -> None:
        """Makes them those of this process."""
        filters: Any = warnings.filters
        found = [one.as_python_has_it() for one in self.filters]
        warnings.resetwarnings()  # which also makes Python forget what it has warned of
        filters.extend(found)
