"""How fast batches come, and how much of the time the consumer waits for them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

_WINDOW = 50  # looks that a rate is worked out of: ten seconds, at five a second


class _Look(NamedTuple):
    time: float
    batches: int
    waited: float


@dataclass(frozen=True)
class Figures:
    """What a bar shows.

    Attributes:
        name: Of what is being gone through.
        done: Batches of it that the consumer has.
        total: Batches in it; None where nobody knows.
        rate: Batches a second.
        waited: The share of the time in which the consumer waited.
        elapsed: Seconds since the bar was begun.
    """

    name: str
    done: int
    total: int | None
    rate: float
    waited: float
    elapsed: float

    @property
    def texts(self) -> list[str]:
        """What is shown beside the bar."""
        count = f"{self.done:,}" if self.total is None else f"{self.done:,}/{self.total:,}"
        left = [] if self.total is None or not self.rate else [f"{_clock((self.total - self.done) / self.rate)} left"]
        return [count, f"{_brief(self.rate)} batches/s", f"waits {self.waited:.0%}", *left]

    @property
    def summary(self) -> str:
        """What stays when it is over."""
        of = "" if self.total in (None, self.done) else f" of {self.total:,}"
        rate = f"{_brief(self.rate)} batches/s, " if self.rate else ""
        return f"{self.name}: {self.done:,}{of} batches in {_clock(self.elapsed)}, {rate}waited {self.waited:.0%}"


class Pace:
    """Works figures out of the last looks at counts that grow.

    Args:
        name: Of what is being gone through.
        done: Batches of it that the consumer has already.
        batches: That were delivered so far.
        waited: Seconds that the consumer has waited so far.
        time: Now, in seconds.
    """

    def __init__(self, name: str, done: int, batches: int, waited: float, time: float) -> None:
        self.total: int | None = None  # batches in it, as soon as somebody knows
        self._name = name
        self._before = done - batches
        self._first = _Look(time, batches, waited)
        self._looks: deque[_Look] = deque([self._first], maxlen=_WINDOW)

    def look(self, batches: int, waited: float, time: float) -> Figures:
        """The figures of the last seconds."""
        now = _Look(time, batches, waited)
        figures = self._since(self._looks[0], now)
        self._looks.append(now)
        return figures

    def whole(self, batches: int, waited: float, time: float) -> Figures:
        """The figures since it was begun."""
        return self._since(self._first, _Look(time, batches, waited))

    def _since(self, then: _Look, now: _Look) -> Figures:
        seconds = max(now.time - then.time, 1e-9)
        share = min(max(now.waited - then.waited, 0.0) / seconds, 1.0)
        rate, elapsed = (now.batches - then.batches) / seconds, now.time - self._first.time
        return Figures(self._name, self._before + now.batches, self.total, rate, share, elapsed)


def _brief(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(max(seconds, 0.0)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"
