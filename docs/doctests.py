"""For Griffe, which reads the docstrings for the Reference: our ``Example:`` is what it calls ``Examples:``."""

from __future__ import annotations

import re
from typing import Any

import griffe


class Doctests(griffe.Extension):
    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = re.sub(r"^Example:$", "Examples:", obj.docstring.value, flags=re.MULTILINE)
