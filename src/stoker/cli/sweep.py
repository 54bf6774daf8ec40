"""A sweep: one dataset, loaded with one setting after the other, and how fast each of them is.

First each kind of workers is measured with twice as many of them each time, until that brings nothing more. Then those
that came out near the best are measured again, in turn, with other values of ``prefetch``: only what was measured side
by side is compared.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import stoker
from stoker.cli.frames import story

_LEAD_IN_S = 0.3  # before the clock runs: workers start, and what was made ahead is taken
_AUTO_LEAD_IN_S = 5.0  # until ``Auto`` has found its number of workers
_ROUNDS = 3  # of the finalists
_GROWS = 1.05  # times the throughput: twice as many workers are worth a try as long as they bring that
_NEAR = 0.9  # of the best: worth another measurement
_AS_GOOD = 0.95  # of the best: of these, the one that takes least is the one to write
_FINALISTS = 4
_PREFETCHES = (1, 2, 4)
_AUTO = 0  # as a number of workers


class NoSamples(Exception):
    """The dataset is empty."""


@dataclass(frozen=True)
class Setting:
    """What is passed to the loader. ``kind``: "Inline", "Threads", "Processes" or "Auto"."""

    kind: str
    count: int
    prefetch: int = 2

    @property
    def workers(self) -> Any:
        make = getattr(stoker, self.kind)
        return make(self.count) if self.count else make()

    @property
    def name(self) -> str:
        return f"{self.kind}({self.count or ''})"

    @property
    def cost(self) -> tuple[int, int, int]:
        """What it takes, for comparison: workers, then whether they share the training's process, then memory."""
        return self.count, self.kind == "Threads", self.prefetch

    def line(self, batch_size: int) -> str:
        """What to write in a program."""
        if self.kind == "Inline":
            return f"stoker.Loader(dataset, {batch_size})"
        workers = '"auto"' if self.kind == "Auto" else f"stoker.{self.name}"
        prefetch = "" if self.prefetch == 2 else f", prefetch={self.prefetch}"
        return f"stoker.Loader(dataset, {batch_size}, workers={workers}{prefetch})"


@dataclass
class Outcome:
    """What was measured of a setting, round by round; or the ``error`` that there was instead."""

    setting: Setting
    rates: list[float] = field(default_factory=list)  # samples a second
    waited: list[float] = field(default_factory=list)  # share of the time
    error: str = ""

    @property
    def rate(self) -> float:
        return median(self.rates) if self.rates else 0.0

    @property
    def waiting(self) -> float:
        return median(self.waited) if self.waited else 0.0


class Sweep:
    """Measures settings, and keeps what came of each.

    Args:
        dataset: As ``Loader`` takes it.
        batch_size: Of each batch.
        step: Seconds that the consumer takes for one.
        seconds: Of a measurement.
        most: Workers, at most.
        shuffle: Whether samples come in a shuffled order.
        on_step: Is told what is measured next.
    """

    def __init__(
        self,
        dataset: Any,
        *,
        batch_size: int,
        step: float,
        seconds: float,
        most: int,
        shuffle: bool,
        on_step: Callable[[str], None],
    ) -> None:
        self._dataset, self._batch_size, self._shuffle = dataset, batch_size, shuffle
        self._step, self._seconds, self._most, self._on_step = step, seconds, most, on_step
        self.outcomes: dict[Setting, Outcome] = {}

    def run(self) -> None:
        """All of it. What a dataset raises inline is raised; of other workers it is noted.

        Raises:
            NoSamples: There is nothing to measure.
        """
        self._measure(Setting("Inline", 0), must_work=True)
        for kind in ("Processes", "Threads"):
            self._grow(kind)
        finalists = list(self._finalists())
        for _ in range(_ROUNDS):
            for setting in finalists:
                self._measure(setting)
        self._measure(Setting("Auto", _AUTO))

    @property
    def best(self) -> Outcome:
        return max(self.outcomes.values(), key=lambda one: one.rate)

    @property
    def chosen(self) -> Outcome:
        """Of those that are as good as the best, the one that takes least."""
        fixed = [one for one in self.outcomes.values() if one.setting.kind != "Auto"]
        enough = _AS_GOOD * max(one.rate for one in fixed)
        return min((one for one in fixed if one.rate >= enough), key=lambda one: one.setting.cost)

    def _grow(self, kind: str) -> None:
        count, rate = 1, 0.0
        while count <= self._most:
            outcome = self._measure(Setting(kind, count))
            if outcome.error or outcome.rate < _GROWS * rate:
                return
            count, rate = 2 * count, outcome.rate

    def _finalists(self) -> Iterator[Setting]:
        near = [one for one in self.outcomes.values() if one.rate >= _NEAR * self.best.rate]
        for one in sorted(near, key=lambda one: -one.rate)[:_FINALISTS]:
            setting = one.setting
            others = _PREFETCHES if setting.count else (setting.prefetch,)
            yield from (Setting(setting.kind, setting.count, prefetch) for prefetch in others)

    def _measure(self, setting: Setting, *, must_work: bool = False) -> Outcome:
        outcome = self.outcomes.setdefault(setting, Outcome(setting))
        if outcome.error:
            return outcome
        self._on_step(f"measuring {setting.name}, prefetch={setting.prefetch}")
        try:
            rate, waited = self._timed(setting)
        except Exception as error:
            if must_work:
                raise
            outcome.error = story(error)
            return outcome
        outcome.rates.append(rate)
        outcome.waited.append(waited)
        return outcome

    def _timed(self, setting: Setting) -> tuple[float, float]:
        """Samples a second, and the share of the time for which the consumer waited."""
        with stoker.Loader(
            self._dataset,
            self._batch_size,
            shuffle=self._shuffle,
            workers=setting.workers,
            prefetch=setting.prefetch,
        ) as loader:
            batches = _endless(loader)
            self._take(batches, loader, _AUTO_LEAD_IN_S if setting.kind == "Auto" else _LEAD_IN_S)
            before = loader.stats()
            elapsed = self._take(batches, loader, self._seconds)
            after = loader.stats()
        return (after.samples - before.samples) / elapsed, (after.waiting - before.waiting) / elapsed

    def _take(self, batches: Iterator[Any], loader: Any, seconds: float) -> float:
        """Batches for so long, and as many as are ahead at least, which may have been there already."""
        ahead, began = loader.stats().units_under_way, time.perf_counter()
        while (passed := time.perf_counter() - began) < seconds or ahead > 0:
            next(batches)
            ahead -= 1
            if self._step:
                time.sleep(self._step)
        return passed


def _endless(loader: Any) -> Iterator[Any]:
    if not len(loader):
        raise NoSamples
    while True:
        yield from loader
