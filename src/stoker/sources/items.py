"""Items: what is done with things that come one by one, and have no index."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from stoker.errors import add_note
from stoker.sources.indexed import Fetched, IsInterrupt, SampleError, never_interrupted
from stoker.sources.retry import Call
from stoker.sources.slow_samples import SlowSamples


class Seeded(NamedTuple):
    """An item whose random numbers follow from a seed of its own, and not from its number."""

    seed: int
    item: Any


@dataclass(frozen=True)
class ItemSource:
    """What is done with an item, as it travels to workers."""

    work: Callable[..., Any]
    is_factory: ClassVar[bool] = False

    @property
    def content(self) -> Any:
        """What travels, and may change."""
        return self.work

    def open(self, call: Call | None = None) -> Work:
        """``call``: by which the work is done; None: directly."""
        if call is None:
            return Work(self.work)
        if getattr(self.work, "retries_parts", False):  # it has each part of an item tried again by itself
            return Work(functools.partial(self.work, call=call))
        return Work(functools.partial(call, self.work))

    def unit_name(self, epoch: int, nth: int) -> str:
        """What the nth unit of an epoch is called in messages."""
        return f"item {nth}"


class Work:
    """What a worker does with items."""

    length = 0  # nobody knows it
    is_timed = False  # by itself: it is all that its worker does at a time
    slow: SlowSamples | None = None

    def __init__(self, work: Callable[[Any], Any], item: Any = None, seed: int | None = None) -> None:
        self._work, self._item, self.seed = work, item, seed

    def on(self, item: Any) -> Work:
        """The same for that item."""
        return Work(self._work, item.item, item.seed) if isinstance(item, Seeded) else Work(self._work, item)

    def sample(self, number: int) -> Any:
        try:
            return self._work(self._item)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            add_note(error, f"stoker: work(item) raised it, over item {number}")
            raise

    def fetch(self, numbers: Sequence[int]) -> Fetched:
        (number,) = numbers
        return Fetched([self.sample(number)], numbers, [])

    def fetch_skipping(self, numbers: Sequence[int], is_interrupt: IsInterrupt = never_interrupted) -> Fetched:
        try:
            return self.fetch(numbers)
        except BaseException as error:
            if is_interrupt(error):
                raise
            return Fetched([], [], [SampleError(numbers[0], error)])
