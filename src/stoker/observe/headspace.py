"""Headspace: how fast training would be with a perfect loader, found by training on batches that are already there."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from time import perf_counter
from typing import Any, TypeVar

from stoker.counts import checked_count
from stoker.observe.rules import percent

B = TypeVar("B")

_WARM = 5  # batches that are not counted: workers start, caches fill, and steps are compiled
_HELD = 4  # batches that are kept to train on again: more might not fit into memory
_NOTHING = 0.02  # of the time: less is not to be told from noise


@dataclass(frozen=True)
class Headspace:
    """What a perfect loader would save.

    Attributes:
        batches: That were measured, each way.
        loaded: Seconds a batch, with the loader.
        perfect: Seconds a batch, with batches that were already there.
    """

    batches: int
    loaded: float
    perfect: float

    @property
    def saved(self) -> float:
        """The share of the time, from 0 to 1, that a perfect loader would save."""
        return max(1.0 - self.perfect / self.loaded, 0.0) if self.loaded else 0.0

    @property
    def sentence(self) -> str:
        saves = f"would save {percent(self.saved)}" if self.saved >= _NOTHING else "would save nothing"
        return (
            f"A perfect loader {saves}: a batch takes {1000 * self.loaded:.3g} ms with this one, and "
            f"{1000 * self.perfect:.3g} ms when it is already there."
        )

    def __str__(self) -> str:
        return self.sentence


def headspace(loader: Iterable[B], step: Callable[[B], Any], *, batches: int = 50) -> Headspace:
    """Measures how much faster training would be with a perfect loader.

    Trains on up to ``batches`` batches of the loader, then as often on the last few of these, which are already there.
    The first five batches are taken as well, and not counted.

    It takes batches of the loader, and does not give them back: use a loader of its own, or save its ``state_dict``
    before and load it afterwards. If the loader ends early, what there was is measured, but for the first batch.

    Args:
        loader: A ``Loader``, or any iterable of batches.
        step: Is called with each batch and does what training does with it. Where a device computes in the background,
            it must wait for the result, as with ``torch.cuda.synchronize()``. Its errors are raised.
        batches: The number of batches to measure.

    Raises:
        ValueError: The loader has no batches.

    Example:
        >>> import stoker
        >>> with stoker.Loader(range(1000), 10) as loader:
        ...     found = stoker.headspace(loader, step=lambda batch: batch.sum())
        >>> found.batches, 0.0 <= found.saved <= 1.0
        (50, True)
    """
    batches = checked_count("batches", batches, "a number of batches, 1 or more")
    held: deque[B] = deque(maxlen=_HELD)
    ends = [perf_counter()]
    for batch in islice(loader, _WARM + batches):
        step(batch)
        held.append(batch)
        ends.append(perf_counter())
    taken = len(ends) - 1
    if not taken:
        raise ValueError("the loader has given no batch: there is nothing to measure")
    warm = _WARM if taken > _WARM else min(1, taken - 1)
    began = perf_counter()
    for number in range(taken - warm):
        step(held[number % len(held)])
    replayed = perf_counter() - began
    measured = taken - warm
    return Headspace(measured, (ends[-1] - ends[warm]) / measured, replayed / measured)
