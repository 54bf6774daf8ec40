"""What happened to each batch, on one clock: a row of whole numbers for each, added up many at a time.

A row costs the consumer a few bytes, which no garbage collector looks at, and an append. All else (histograms, and what
was going on while the consumer waited) is worked out of a thousand rows at once with numpy, a fraction of a microsecond
a batch.

    worker      free ── began ── fetched ── written
                  idle    fetch    write       │ transfer
    here                                    arrived ── ready ──> moved ─┐
                                                        move            │
    consumer    asked ─────────────────── wait ─────────────────────── handed ── step ── asked again
"""

from __future__ import annotations

import struct
import threading
from collections import deque
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stoker.interrupts import put_off
from stoker.observe.distribution import Distribution, Histogram

Column = npt.NDArray[np.int64]

_FOLD = 1024  # rows that are worked out at once
_RECENT = 4096  # rows that are kept as they are, for the timeline and the trace
_SLOWEST = 5  # batches that are kept by name

STATIONS = ("idle", "fetch", "write", "transfer", "ready", "move", "wait", "step")
NOBODY = -1  # the worker of a batch that was cut of what came before


class Row(NamedTuple):
    """One batch, or what many are cut of. Times are in nanoseconds of ``perf_counter_ns``.

    Attributes:
        worker: Its number; ``NOBODY`` if it was cut of what came before, and nothing is to be told of its making.
        epoch: Of the batch.
        position: Of the batch, or the number of the item or group.
        samples: In it.
        made: Samples that ``dataset[i]`` was called for; fewer than ``samples`` where a store had them.
        nbytes: Of its arrays.
        cpu: Nanoseconds of processor time that its worker took for it and those before it in its run.
        free: The worker had nothing to do from then on.
        began: It began with ``dataset[i]``.
        fetched: It had the samples and began to collate.
        written: The batch lay in the worker's slot.
        arrived: It lay in the consumer's.
        asked: The consumer asked for it.
        waited: Nanoseconds of that time in which nothing could be done but wait for it.
        moving: Nanoseconds that it took through the bridge: ``to`` and the way to the device.
        moved: The bridge was done with it; 0 where there is none.
        handed: The consumer had it.
    """

    worker: int
    epoch: int
    position: int
    samples: int
    made: int
    nbytes: int
    cpu: int
    free: int
    began: int
    fetched: int
    written: int
    arrived: int
    asked: int
    waited: int
    moving: int
    moved: int
    handed: int


_ROW = struct.Struct(f"{len(Row._fields)}q")
pack = _ROW.pack  # gets the fields of a ``Row`` one by one, without a tuple of them


@dataclass(frozen=True)
class Station:
    """One of the places where time goes.

    "idle": a worker has nothing to do. "fetch": ``dataset[i]``, or a store in its place. "write": collation, straight
    into the slot. "transfer": the way here from another machine. "ready": it is done, and waits for an earlier one or
    for the consumer. "move": ``to`` and the way to a device. "wait": the consumer waits in ``next()``. "step": what the
    consumer does between two batches.

    Attributes:
        spent: How long batches took there, one by one, over all workers.
        while_waiting: Seconds of it, over all workers, that passed while the consumer waited: of what was running
            then, this is what held it up.
    """

    spent: Distribution = field(default_factory=Distribution)
    while_waiting: float = 0.0


@dataclass(frozen=True)
class SlowBatch:
    """One of those that took longest to make.

    ``is_first``: it was the first that its worker made. ``calls``: samples of it that ``dataset[i]`` was called for; a
    cache or rotation had the others.
    """

    epoch: int
    position: int
    worker: int
    seconds: float
    is_first: bool = False
    calls: int = 0


class Waits:
    """When the consumer waited, so that it can be said of any span how much of it fell into that."""

    def __init__(self, begins: Column, ends: Column) -> None:
        """In order, and none within another."""
        edges = np.empty(2 * len(begins) + 1, np.int64)
        edges[0], edges[1::2], edges[2::2] = 0, begins, ends
        reached = np.zeros(len(edges), np.int64)
        reached[2::2] = np.cumsum(ends - begins)
        reached[1::2] = reached[0:-1:2]
        self._edges, self._reached = edges, reached

    def within(self, begins: Column, ends: Column) -> int:
        """Nanoseconds of these spans, together, in which the consumer waited."""
        return int((self._until(ends) - self._until(begins)).sum())

    def _until(self, times: Column) -> npt.NDArray[np.float64]:
        return np.interp(times, self._edges, self._reached)


class Recording:
    """Adds up rows, and keeps the last ones as they were."""

    def __init__(self, workers: int) -> None:
        self._rows: list[bytes] = []  # always this list: one thread adds to it while another folds
        self._kept: list[list[Column]] = []  # what traces have of it
        self._folding = threading.Lock()  # also by a thread that watches
        self._recent: deque[bytes] = deque(maxlen=_RECENT)
        self._spent = {name: Histogram() for name in STATIONS}
        self._while_waiting = dict.fromkeys(STATIONS, 0)
        self._by_worker = np.zeros((workers, len(_SUMS)), np.int64)
        self._slowest: list[tuple[int, ...]] = []  # nanoseconds, and which
        self._first = np.full(workers, np.iinfo(np.int64).max)  # when each worker began its first batch
        self._waits = np.zeros((2, 0), np.int64)  # of the last rows: some that come now were made meanwhile
        self._last_handed = 0

    def __reduce__(self) -> tuple[type[Recording], tuple[int]]:
        """A copy begins with nothing: what was recorded belongs to the process in which it happened."""
        return Recording, (len(self._by_worker),)

    def add(self, row: bytes) -> None:
        """One that ``pack`` has made."""
        rows = self._rows
        rows.append(row)
        if len(rows) >= _FOLD:
            self.fold()

    def fold(self) -> None:
        """Works out what has come since the last time."""
        with put_off(), self._folding:
            rows = self._rows[:]
            del self._rows[: len(rows)]
            if rows:
                self._recent.extend(rows)
                table = np.frombuffer(b"".join(rows), np.int64).reshape(len(rows), -1)
                for kept in self._kept:
                    kept.append(table)
                self._take_in(Row(*table.T))

    @property
    def recent(self) -> list[Row]:
        """The last rows, oldest first. From any thread."""
        return self.last(_RECENT)

    def last(self, most: int) -> list[Row]:
        """So many of them. From any thread."""
        self.fold()
        with put_off(), self._folding:
            return [Row(*_ROW.unpack(row)) for row in (*self._recent,)[-most:]]

    def keep(self) -> list[Column]:
        """From now on all rows are added to this list, as tables with a line for each, until it is dropped."""
        self.fold()
        kept: list[Column] = []
        self._kept.append(kept)
        return kept

    def drop(self, kept: list[Column]) -> None:
        """Adds what there is so far, and nothing after that."""
        self.fold()
        self._kept = [one for one in self._kept if one is not kept]

    def stations(self) -> dict[str, Station]:
        return {name: Station(self._spent[name].distribution(), self._while_waiting[name] / 1e9) for name in STATIONS}

    def sums(self) -> list[dict[str, int]]:
        """Worker by worker: batches, samples and the like, and nanoseconds at each station."""
        return [dict(zip(_SUMS, map(int, row), strict=True)) for row in self._by_worker]

    def slowest(self) -> tuple[SlowBatch, ...]:
        return tuple(
            SlowBatch(epoch, position, worker, ns / 1e9, began == self._first[worker].item(), calls)
            for ns, epoch, position, worker, began, calls in self._slowest
        )

    def _take_in(self, rows: Any) -> None:
        """``rows``: a ``Row`` of columns."""
        waits, steps = np.stack([rows.asked, rows.handed]), self._steps(rows)
        self._spent["wait"].add(rows.handed - rows.asked)
        self._spent["step"].add(steps)
        spans = _spans(rows)
        overlap = Waits(*np.concatenate([self._waits, waits], axis=1))
        for name, (begins, ends) in spans.items():
            self._spent[name].add((ends - begins)[ends > begins])
            self._while_waiting[name] += overlap.within(begins, ends)
        self._waits = waits
        counts = np.ones_like(rows.samples), rows.samples, rows.made, rows.cpu
        durations = (ends - begins for begins, ends in (spans[name] for name in _SUMS[len(counts) :]))
        is_made = rows.worker != NOBODY
        for at, column in enumerate((*counts, *durations)):
            np.add.at(self._by_worker[:, at], rows.worker[is_made], column[is_made])
        self._note_slowest(rows)

    def _steps(self, rows: Any) -> Column:
        """What the consumer does between two batches."""
        before = np.concatenate([[self._last_handed], rows.handed[:-1]])
        self._last_handed = int(rows.handed[-1])
        steps: Column = (rows.asked - before)[before > 0]
        return steps

    def _note_slowest(self, rows: Any) -> None:
        making = rows.written - rows.began
        is_made = rows.worker != NOBODY
        np.minimum.at(self._first, rows.worker[is_made], rows.began[is_made])
        for at in np.argsort(making)[: -_SLOWEST - 1 : -1]:
            if rows.worker[at] == NOBODY:
                break
            found = making[at], rows.epoch[at], rows.position[at], rows.worker[at], rows.began[at], rows.made[at]
            self._slowest.append(tuple(map(int, found)))
        self._slowest = sorted(self._slowest, reverse=True)[:_SLOWEST]


_SUMS = ("batches", "samples", "made", "cpu", "idle", "fetch", "write", "transfer")


def _spans(rows: Any) -> dict[str, tuple[Column, Column]]:
    """When each batch was at each station on its way to the consumer."""
    moved = np.where(rows.moved > 0, rows.moved, rows.handed)
    return {
        "idle": (rows.free, rows.began),
        "fetch": (rows.began, rows.fetched),
        "write": (rows.fetched, rows.written),
        "transfer": (rows.written, rows.arrived),
        "ready": (rows.arrived, np.maximum(moved - rows.moving, rows.arrived)),
        "move": (moved - rows.moving, moved),
    }
