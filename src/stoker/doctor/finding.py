"""What a check has found."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import IntEnum
from typing import Any


class Level(IntEnum):
    """How bad it is. From ``WARNING`` on, something is to be changed."""

    FINE = 0
    NOTE = 1
    WARNING = 2
    ERROR = 3


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        check: What was looked at.
        level: How bad it is.
        what: What was found, with the numbers.
        why: What that means for a loader; empty where all is fine.
        remedy: The line that mends it, for a shell or a program; empty where there is nothing to mend.
    """

    check: str
    level: Level
    what: str
    why: str = ""
    remedy: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return asdict(self) | {"level": self.level.name.lower()}
