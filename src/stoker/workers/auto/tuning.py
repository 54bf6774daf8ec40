"""Tuning: how many workers there should be, and how far ahead of the consumer. Pure: all is told to it.

Every change but a necessary one is a trial: the throughput of the next periods is compared with that of the periods
before, and what has not helped is undone. A trial that failed, or would undo one that succeeded, comes only after a
pause; one that failed goes half as far the next time, or, if that is not possible, comes after twice the pause.
Why it is so is in docs/design/auto.md.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable
from dataclasses import dataclass, field

_HUNGRY = 0.03  # of the time that the consumer waits for batches: less is not worth a change
_IDLE = 0.5  # of that time, with a worker that has nothing to do: more batches ahead would help, not more workers
_EASY = 0.7  # of the time at work, if there were fewer workers: so many are enough
_CALM = 4  # periods one after the other in which fewer would be enough, before any is retired
_GAIN = 0.04  # in throughput: a change that brings less is undone
_PERIODS = 3  # before a change and after it, whose throughputs are compared
_USED = 0.96  # of the cores, by workers: what one more would add is not worth it
_PAUSE_S, _LONGEST_PAUSE_S = 8.0, 120.0  # after a trial that has failed
_OTHER = 1.3  # times the worker-seconds that a sample took: the work, or the machine, is not what it was
_RESERVE, _MOST_RESERVED = 0.1, 2**31  # of the memory, and in bytes: so much is left to others


@dataclass(frozen=True)
class Measurement:
    """What happened in a period in which the number of workers was the same.

    Attributes:
        seconds: Its length.
        workers: That were up.
        samples: That workers have made.
        cycles: Worker-seconds that they took for these, from the end of the work before: ``busy``, and idle time.
        busy: Worker-seconds at work.
        cpu: Worker-seconds on a processor,
        delayed: and in wait of one, which others had.
        waited: Seconds for which the consumer was blocked.
        starved: Seconds of these in which a worker had nothing to do.
        memory: Bytes that are free, as far as this process may use them,
        memory_limit: of so many.
        worker_bytes: That each further worker would take.
        slot_bytes: That all batches under way and ready take.
    """

    seconds: float
    workers: int
    samples: int
    cycles: float
    busy: float
    cpu: float
    waited: float
    delayed: float = 0.0
    starved: float = 0.0
    memory: float = math.inf
    memory_limit: float = 0.0
    worker_bytes: float = 0.0
    slot_bytes: float = 0.0

    @property
    def throughput(self) -> float:
        """Samples a second. Not counted by the clock, as a period may end just before or after a batch."""
        return self.workers * self.samples / max(self.cycles, 1e-9)

    @property
    def cost(self) -> float:
        """Worker-seconds that a sample takes."""
        return self.busy / max(self.samples, 1)

    @property
    def use(self) -> float:
        """The part of a core that a worker could use while it works; else it waits, as for a network."""
        return min(1.0, (self.cpu + self.delayed) / max(self.busy, 1e-9))

    @property
    def is_hungry(self) -> bool:
        return self.waited > _HUNGRY * self.seconds

    @property
    def room(self) -> float:
        """Bytes that workers may still take."""
        return self.memory - min(_RESERVE * self.memory_limit, _MOST_RESERVED)


class Kind(enum.Enum):
    """What a trial changes."""

    MORE = "more workers, since the consumer waits for them"
    FEWER = "fewer workers, since they may be in each other's way"
    SPARE = "fewer workers, since these are enough"
    AHEAD = "more batches ahead, since workers idle while the consumer waits"
    NEARER = "fewer batches ahead, since these are enough"


_SPARING = (Kind.SPARE, Kind.NEARER)  # nothing is gained by them but room; so they are undone at the first wait


# What would undo a trial that has succeeded, and waits: else it might go to and fro.
_CONTRARY = {Kind.MORE: (Kind.FEWER, Kind.SPARE), Kind.FEWER: (Kind.MORE,), Kind.AHEAD: (Kind.NEARER,)}

# How far a trial goes, as a share of the workers that there are; half as far each time that it was too far.
_STRIDES = {Kind.MORE: 1.0, Kind.FEWER: 0.25}


@dataclass
class _Trial:
    kind: Kind
    before: tuple[int, int]  # ``wanted`` and ``ahead``
    compared_with: list[Measurement]
    periods: list[Measurement] = field(default_factory=list)


@dataclass
class _Pause:
    """Of a kind of trial: how long the next one is, since when and until when it lasts, and what a sample cost then."""

    seconds: float = _PAUSE_S
    since: float = 0.0
    until: float = 0.0
    cost: float = 0.0


class Tuning:
    """Says how many workers are ``wanted``, and how many times the usual number of batches may be ``ahead`` for each.

    Args:
        first: Workers at the start.
        least: There are never fewer,
        most: and never more.
        cores: That workers may use.
        most_ahead: What ``ahead`` is at most.
    """

    def __init__(self, *, first: int, least: int, most: int, cores: int, most_ahead: int) -> None:
        self.wanted, self.ahead = first, 1
        self._least, self._most, self._cores, self._most_ahead = least, most, cores, most_ahead
        self._now = 0.0  # seconds of all periods so far
        self._recent: list[Measurement] = []  # the last periods with these numbers
        self._calm = 0
        self._trial: _Trial | None = None
        self._last_kept: Kind | None = None
        self._strides = dict(_STRIDES)
        self._pauses = {kind: _Pause() for kind in Kind}
        self._pauses[Kind.FEWER].until = _PAUSE_S  # it costs throughput, and seldom brings any

    @property
    def is_trying(self) -> bool:
        """Whether what was changed last may still be undone."""
        return self._trial is not None

    def note(self, period: Measurement) -> None:
        """A period is over, in which as many workers were up as are wanted."""
        self._now += period.seconds
        if period.room < 0 and self.wanted > self._least:
            self._give_way()
        elif self._trial is not None:
            self._judge(self._trial, period)
        else:
            self._recent = [*self._recent, period][-_PERIODS:]
            if len(self._recent) == _PERIODS:
                self._consider(period)

    def died(self) -> None:
        """A worker has: if that was in a trial, perhaps because of it."""
        if self._trial is not None:
            self._undo(self._trial)

    def refused(self, up: int) -> None:
        """No more workers can be started than those that are up."""
        self.died()
        self._set(min(self.wanted, max(up, 1)), self.ahead)
        self._pause(Kind.MORE)

    # What to change

    def _consider(self, period: Measurement) -> None:
        if not period.is_hungry:
            self._consider_sparing(period)
            return
        self._calm = 0
        lacks_credit = period.starved > _IDLE * period.waited
        if lacks_credit and self._may(Kind.AHEAD) and self._has_room(period, self.wanted, 2 * self.ahead):
            self._try(Kind.AHEAD, self.wanted, 2 * self.ahead)
        elif not lacks_credit and self._may(Kind.MORE) and (more := self._more(period)) > self.wanted:
            self._try(Kind.MORE, more, self.ahead)
        elif self._may(Kind.FEWER) and self.wanted > self._least:
            fewer = self.wanted - math.ceil(self.wanted * self._strides[Kind.FEWER])
            self._try(Kind.FEWER, max(self._least, fewer), self.ahead)

    def _consider_sparing(self, period: Measurement) -> None:
        """The consumer has all that it can take. It does not pay to retire one worker of many."""
        enough = max(self._least, math.ceil(period.busy / period.seconds / _EASY))
        may_spare = enough < self.wanted and self._may(Kind.SPARE)
        may_come_nearer = self.ahead > 1 and self._may(Kind.NEARER)
        self._calm = self._calm + 1 if may_spare or may_come_nearer else 0
        if self._calm >= _CALM and may_spare:
            self._try(Kind.SPARE, max(enough, self.wanted // 2), self.ahead)
        elif self._calm >= _CALM:
            self._try(Kind.NEARER, self.wanted, self.ahead // 2)

    def _more(self, period: Measurement) -> int:
        """As many as the consumer would need, but no more than a stride takes, and than can be used."""
        needed = self.wanted * min(1 / max(1 - period.waited / period.seconds, 1e-9), 1 + self._strides[Kind.MORE])
        usable = math.ceil(_USED * self._cores / max(period.use, 1e-3))
        more = min(max(math.ceil(needed), self.wanted + 1), usable, self._most)
        while more > self.wanted and not self._has_room(period, more, self.ahead):
            more -= 1
        return more

    def _has_room(self, period: Measurement, workers: int, ahead: int) -> bool:
        """Whether memory has."""
        if ahead > self._most_ahead:
            return False
        growth = workers * ahead / (self.wanted * self.ahead) - 1
        return (workers - self.wanted) * period.worker_bytes + growth * period.slot_bytes <= period.room

    # Trials

    def _may(self, kind: Kind) -> bool:
        """Whether no pause lasts. A long one ends where samples have come to cost more, or less, than when it began."""
        pause, cost = self._pauses[kind], _mean(one.cost for one in self._recent)
        is_other_work = pause.cost > 0 and not pause.cost / _OTHER <= cost <= pause.cost * _OTHER
        return self._now >= (min(pause.until, pause.since + _PAUSE_S) if is_other_work else pause.until)

    def _try(self, kind: Kind, workers: int, ahead: int) -> None:
        self._trial = _Trial(kind, (self.wanted, self.ahead), self._recent)
        self._set(workers, ahead)

    def _judge(self, trial: _Trial, period: Measurement) -> None:
        trial.periods.append(period)
        if trial.kind in _SPARING and period.is_hungry:
            self._undo(trial)
        elif len(trial.periods) >= _PERIODS:
            is_fed = not any(one.is_hungry for one in trial.periods)
            if is_fed or _has_gained(trial.compared_with, trial.periods):
                self._keep(trial)
            else:
                self._undo(trial)

    def _keep(self, trial: _Trial) -> None:
        self._trial, self._recent = None, trial.periods
        self._lengthen(trial.kind, 2)
        for kind in _CONTRARY.get(trial.kind, ()):
            self._pause(kind, is_longer=kind is self._last_kept)
        self._last_kept = trial.kind

    def _undo(self, trial: _Trial) -> None:
        can_be_shorter = trial.kind in self._strides and abs(self.wanted - trial.before[0]) > 1
        self._trial = None
        self._set(*trial.before)
        self._recent = trial.compared_with
        self._lengthen(trial.kind, 0.5)
        self._pause(trial.kind, is_longer=not can_be_shorter)

    def _lengthen(self, kind: Kind, factor: float) -> None:
        """The next stride."""
        if kind in self._strides:
            self._strides[kind] = min(factor * self._strides[kind], _STRIDES[kind])

    def _pause(self, kind: Kind, *, is_longer: bool = True) -> None:
        """No trial of this kind for a while, and for longer the next time."""
        pause = self._pauses[kind]
        pause.since, pause.until = self._now, self._now + pause.seconds
        pause.cost = _mean(one.cost for one in self._recent)
        if is_longer:
            pause.seconds = min(2 * pause.seconds, _LONGEST_PAUSE_S)

    def _give_way(self) -> None:
        """Memory is short: one worker fewer, and no more for a while, whatever it costs."""
        self._trial = None
        self._set(self.wanted - 1, self.ahead)
        for kind in (Kind.MORE, Kind.AHEAD):
            self._pauses[kind].since = self._pauses[kind].until = self._now + _LONGEST_PAUSE_S

    def _set(self, workers: int, ahead: int) -> None:
        self.wanted, self.ahead = workers, ahead
        self._recent, self._calm = [], 0


def _has_gained(before: list[Measurement], after: list[Measurement]) -> bool:
    """By enough, and in each period: on a busy machine, some are better than others without any reason."""
    was, now = ([one.throughput for one in periods] for periods in (before, after))
    return min(now) > max(was) and _mean(now) >= (1 + _GAIN) * _mean(was)


def _mean(values: Iterable[float]) -> float:
    """0 if there are none."""
    found = list(values)
    return sum(found) / max(len(found), 1)
