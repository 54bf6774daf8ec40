"""What the engine gives to whoever asks for a batch."""

from __future__ import annotations

from typing import Any, NamedTuple

from stoker.plan import Batch
from stoker.workers import Made, Skipped


class Delivery(NamedTuple):
    """A batch for the consumer, or the error to raise in its place.

    ``made``: None if all its samples were left out. Times in nanoseconds: its worker had been ``idle`` before it, the
    consumer was blocked for it (``waited``), and it was ``moving`` through the bridge. ``ended``: there are no more.
    """

    batch: Batch
    data: Any = None
    made: Made | None = None
    error: BaseException | None = None
    skipped: tuple[Skipped, ...] = ()
    worker: int = 0
    idle: int = 0
    waited: int = 0
    moving: int = 0
    ended: bool = False
