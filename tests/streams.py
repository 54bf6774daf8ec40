"""Reading what loaders deliver; comparing it is the kit's business."""

from __future__ import annotations

from typing import Any

from stoker.testing import assert_same
from stoker.testing.streams import kept

__all__ = ["assert_same", "epochs", "kept"]


def epochs(loader: Any, count: int) -> list[list[Any]]:
    return [[kept(batch) for batch in loader] for _ in range(count)]
