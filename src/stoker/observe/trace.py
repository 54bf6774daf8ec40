"""A trace: what each batch went through, drawn on an axis of time by Perfetto."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field

import numpy as np

from stoker.observe.meter import Meter, WorkerDeath
from stoker.observe.recording import Column, Row
from stoker.observe.trace_events import Timeline, events
from stoker.observe.trace_files import write_trace


@dataclass(eq=False)
class Traced:
    """One loader or stream in a trace. Holds what was measured, and none of its workers.

    Attributes:
        name: What it is called in the trace.
        meter: Of it.
        moves_ahead: A thread moves its batches to a device.
        pid: Of the consumer.
    """

    name: str
    meter: Meter
    moves_ahead: bool
    pid: int = field(default_factory=os.getpid)
    _kept: list[Column] | None = None  # since the recording began, if it has
    _began: int = 0

    def begin(self) -> None:
        """Records from now on."""
        self._began, self._kept = time.perf_counter_ns(), self.meter.keep()

    def end(self) -> None:
        """Records no more."""
        if self._kept is not None:
            self.meter.drop(self._kept)

    def timeline(self) -> Timeline:
        """What was recorded so far; if nothing was to be, the last batches."""
        recent = self.meter.recent()  # which brings up to date what is kept
        tables = [np.array(recent, np.int64)] if self._kept is None else self._kept
        rows = np.concatenate([np.zeros((0, len(Row._fields)), np.int64), *(table for table in tables if len(table))])
        deaths = [death for death in self.meter.deaths if self._is_told(death, rows)]
        return Timeline(self.name, rows, deaths, self.meter.worker_names(), self.moves_ahead, self.pid)

    def _is_told(self, death: WorkerDeath, rows: Column) -> bool:
        if self._kept is not None or not len(rows):
            return death.time >= self._began
        return death.time >= int(rows[0, Row._fields.index("began")])


class Trace:
    """A trace of one or several loaders and streams, for Perfetto or ``chrome://tracing``.

    ``loader.trace(path)`` makes one. Make one yourself to have several loaders in one file:

        with stoker.Trace("trace.json") as trace:
            train_loader.trace(trace)
            test_loader.trace(trace)
            ...

    As a context manager, it records all batches from the beginning of the block, or from when a loader was added to it,
    and writes them at the end of the block. Otherwise it has the last 4096 batches of each loader.

    Args:
        path: The file to write. If it ends in ``.gz``, it is compressed.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._traced: list[Traced] = []
        self.is_recording = False  # all that comes from now on is in it

    def add(self, traced: Traced) -> None:
        """One more loader or stream, if it is not in it already: ``loader.trace(trace)`` does this."""
        if not traced.meter.is_observing:
            raise ValueError("observe=False: nothing is measured, so there is nothing to trace. Pass observe=True")
        if any(one.meter is traced.meter for one in self._traced):
            return
        self._traced.append(traced)
        if self.is_recording:
            traced.begin()

    def write(self) -> None:
        """Writes the file with what there is by now; in a ``with`` block that happens at its end.

        Raises:
            OSError: The file cannot be written.
        """
        ahead = time.time_ns() - time.perf_counter_ns()  # of the clock that rows are measured by
        timelines = [one.timeline() for one in self._traced]
        begins = [Row._fields.index(name) for name in ("began", "asked")]
        firsts = [int(one.rows[:, begins].min()) for one in timelines if len(one.rows)]
        base = min(firsts, default=time.perf_counter_ns())
        write_trace(self.path, events(timelines, base), base + ahead)

    def __enter__(self) -> Trace:
        self.is_recording = True
        for traced in self._traced:
            traced.begin()
        return self

    def __exit__(self, *exc: object) -> None:
        self.is_recording = False
        for traced in self._traced:
            traced.end()
        self.write()

    def __repr__(self) -> str:
        return f"Trace({self.path!r}, {len(self._traced)} loaders)"
