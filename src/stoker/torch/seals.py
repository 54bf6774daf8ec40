"""Sealed states: what a dataset says of where it is, as it is then, whatever it does to those objects afterwards."""

from __future__ import annotations

import pickle
from typing import Any


def sealed(state: dict[str, Any]) -> bytes:
    return pickle.dumps(state, pickle.HIGHEST_PROTOCOL)


def opened(state: bytes | None) -> dict[str, Any]:
    """A new copy each time. Nothing is told by None."""
    found: dict[str, Any] = {} if state is None else pickle.loads(state)
    return found
