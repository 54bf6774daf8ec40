"""Which kind of dataset something is, told without importing what only that kind needs."""

from __future__ import annotations

import sys
from typing import Any


def is_mix(dataset: Any) -> bool:
    """Whether it is a ``Mix``."""
    module = sys.modules.get("stoker.sources.mix")
    return module is not None and isinstance(dataset, module.Mix)


def is_chunks(dataset: Any) -> bool:
    """Whether it is a ``Chunks``. Whoever has one has imported its module."""
    module = sys.modules.get("stoker.sources.chunks")
    return module is not None and isinstance(dataset, module.Chunks)
