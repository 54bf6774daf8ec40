"""Where in a file reading is, for the error that says where it failed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class ReadContext:
    """The position, in words: ``line 17, byte 2,034``. Empty where there is none to tell."""

    where: str = ""
