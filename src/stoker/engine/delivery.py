"""What the engine gives to whoever asks for a batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from stoker.plan import Batch
from stoker.workers import Made, Skipped


class OpenUnit(Protocol):
    """A unit that has several batches, which are at hand one after the other."""

    @property
    def sizes(self) -> list[int]:
        """How many samples they have."""

    def make(self, nth: int) -> Any:
        """The nth of them."""

    def after(self, nth: int) -> Any:
        """Where the consumer is once it has the nth of them."""


@dataclass(slots=True, eq=False)
class Delivery:
    """A batch for the consumer, or the error to raise in its place.

    ``samples``: how many it has; 0 if all were left out. ``made``: what the worker says of it. In nanoseconds: the
    consumer was blocked for it (``waited``), and it was ``moving`` through the bridge, until the time ``moved``; what
    its worker did is in ``made.timing``. ``ended``: there are no more.

    It goes from hand to hand, and at each step notes what was done with it, so that whoever is interrupted can go on:
    ``is_moved`` through the bridge, ``is_noted`` in the figures, ``is_taken`` by the consumer.

    Where units have several batches, ``make`` is to make ``data``; ``is_own``: in the consumer's thread, as it may draw
    from its random generators. ``unit``: it is the ``nth`` batch of that, and those after it come without the engine.
    ``after``: where the consumer is once it has this; ``otherwise``, if what was left out is too much, and it goes on
    all the same.
    """

    batch: Batch
    data: Any = None
    made: Made | None = None
    error: BaseException | None = None
    skipped: tuple[Skipped, ...] = ()
    worker: int = 0
    waited: int = 0
    samples: int = 0
    moving: int = 0
    moved: int = 0
    ended: bool = False
    is_moved: bool = False
    is_noted: bool = False
    is_taken: bool = False
    make: Callable[[], Any] | None = None
    is_own: bool = False
    unit: OpenUnit | None = None
    nth: int = 0
    after: Any = None
    otherwise: Any = None
