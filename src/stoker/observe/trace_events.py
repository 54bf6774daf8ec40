"""Rows of batches as events of a Chrome JSON trace, which Perfetto draws.

    consumer        |-- wait --|------- step -------|-- wait --|
                        |move|       ^                             without a device
    device thread      |-- move --|  |                             with one
    worker 0        |--- fetch ---|-- write --|                    an arrow leads from ``write`` to ``step``
    ready                                     |------|             done, and waiting for an earlier one or the consumer

An arrow joins two spans, and Perfetto has it begin at the one that began first. So it cannot end at ``wait``, which may
have begun before ``write``, but at the ``step`` that begins when the batch is handed over. Its ends come right after
the spans that they belong to, with the same time.

Spans of one track must lie beside or within each other. Those that overlap, as several batches are ready at the same
time, are asynchronous events, of which each has its own line.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from stoker.observe.meter import WorkerDeath
from stoker.observe.recording import NOBODY, Column, Row

Event = dict[str, Any]

_CATEGORY = "stoker"
ABOVE_PIDS = 1 << 22  # Linux has no process with such an id: a group of tracks of ours never mixes with a real one

_AT_A_TIME = 4096  # rows that are Python's numbers
_CONSUMER, _DEVICE, _FIRST_WORKER = 1, 2, 10  # tracks of a group, in this order


@dataclass(frozen=True)
class Timeline:
    """What is known of one loader or stream.

    Attributes:
        name: What the group of its tracks is called.
        rows: A table with the fields of ``Row``, in the order in which the consumer got the batches.
        deaths: Of its workers.
        workers: Their names.
        moves_ahead: A thread moves its batches to a device.
        pid: Of the consumer.
    """

    name: str
    rows: Column
    deaths: Sequence[WorkerDeath]
    workers: Sequence[str]
    moves_ahead: bool
    pid: int


def events(timelines: Sequence[Timeline], base: int) -> Iterator[Event]:
    """All of it, one by one: of a million batches, they would not fit into memory.

    ``base``: the time in nanoseconds of ``perf_counter_ns`` that is 0 in the trace.
    """
    flow = 0  # the id of the first arrow
    for number, timeline in enumerate(timelines, 1):
        group = ABOVE_PIDS * number + timeline.pid
        arrows = _arrows(timeline.rows)
        for event in itertools.chain(
            _names(timeline),
            _of_workers(timeline.rows, flow, arrows),
            _of_consumer(timeline, flow, arrows),
            _on_the_way(timeline.rows, flow),
            _of_deaths(timeline.deaths),
        ):
            event["pid"], event["tid"] = group, group + event["tid"]  # Perfetto finds a track's name by its tid alone
            if "ts" in event:
                event["ts"] = (event["ts"] - base) / 1e3
            yield event
        flow += len(timeline.rows)


def _names(timeline: Timeline) -> list[Event]:
    tracks = [(_CONSUMER, "consumer"), *enumerate(timeline.workers, _FIRST_WORKER)]
    if timeline.moves_ahead:
        tracks.insert(1, (_DEVICE, "device thread"))
    found = [_metadata("process_name", 0, name=timeline.name), _metadata("process_sort_index", 0, sort_index=-1)]
    for track, name in tracks:
        found += [_metadata("thread_name", track, name=name), _metadata("thread_sort_index", track, sort_index=track)]
    return found


def _arrows(rows: Column) -> npt.NDArray[np.bool_]:
    """Which batches have one: those that a worker has made before the consumer got them, and whose step is known."""
    every: Any = Row(*rows.T)
    is_told: npt.NDArray[np.bool_] = (every.worker != NOBODY) & (every.fetched < every.written)
    is_told &= every.written <= every.handed
    is_told[:-1] &= every.asked[1:] > every.handed[:-1]
    is_told[-1:] = False
    return is_told


def _of_consumer(timeline: Timeline, flow: int, arrows: npt.NDArray[np.bool_]) -> Iterator[Event]:
    """What it waits for, and does, and what the device's thread does for it. ``arrows``: those that end here."""
    left, moved = 0, 0  # when it was given the batch before, and when that was moved
    before: Row | None = None
    for at, row in enumerate(_in_order(timeline.rows)):
        begin, args = max(row.asked, left), _args(row)
        if before is not None and row.asked > left:
            yield _span("step", _CONSUMER, left, row.asked, _args(before))
            if arrows[at - 1]:
                yield _event("f", "batch", _CONSUMER, left) | {"id": flow + at - 1, "bp": "e"}
        yield _span("wait", _CONSUMER, begin, row.handed, args)
        if row.moving and row.moved and timeline.moves_ahead:
            yield _span("move", _DEVICE, max(row.moved - row.moving, moved), row.moved, args)
            moved = row.moved
        elif row.moving and row.moved:
            end = min(row.moved, row.handed)
            yield _span("move", _CONSUMER, min(max(end - row.moving, begin), end), end, args)
        left, before = row.handed, row


def _of_workers(rows: Column, flow: int, arrows: npt.NDArray[np.bool_]) -> Iterator[Event]:
    """``arrows``: those that begin here; one that would lead back is taken out."""
    ends: dict[int, int] = {}
    order = np.argsort(rows[:, Row._fields.index("began")], kind="stable")
    for at, row in zip(order.tolist(), _in_order(rows[order]), strict=True):
        if row.worker == NOBODY:
            continue
        track, args = _FIRST_WORKER + row.worker, _args(row)
        end = ends.get(track, 0)  # clocks of other machines are known within some microseconds only
        began, fetched, written = max(row.began, end), max(row.fetched, end), max(row.written, end)
        yield _span("fetch", track, began, fetched, args)
        yield _span("write", track, fetched, written, args)
        arrows[at] &= fetched <= row.handed
        if arrows[at]:
            yield _event("s", "batch", track, fetched) | {"id": flow + at}
        ends[track] = written


def _on_the_way(rows: Column, flow: int) -> Iterator[Event]:
    for number, row in enumerate(_in_order(rows), flow):
        if row.worker == NOBODY:
            continue
        moved = row.moved or row.handed
        spans = ("transfer", row.written, row.arrived), ("ready", row.arrived, min(moved - row.moving, row.handed))
        for name, begin, end in spans:
            if end > begin:
                own = {"cat": f"{_CATEGORY}.{name}", "id": number}
                yield _event("b", name, _CONSUMER, begin) | own | {"args": _args(row)}
                yield _event("e", name, _CONSUMER, end) | own


def _of_deaths(deaths: Iterable[WorkerDeath]) -> Iterator[Event]:
    for death in deaths:
        instant = _event("i", f"died: {death.cause}", _FIRST_WORKER + death.worker, death.time)
        yield instant | {"s": "t"}


def _in_order(rows: Column) -> Iterator[Row]:
    for at in range(0, len(rows), _AT_A_TIME):
        yield from map(Row._make, rows[at : at + _AT_A_TIME].tolist())


def _args(row: Row) -> dict[str, int]:
    if row.worker == NOBODY:
        return {}
    return {
        "epoch": row.epoch,
        "position": row.position,
        "samples": row.samples,
        "bytes": row.nbytes,
        "worker": row.worker,
    }


def _span(name: str, track: int, begin: int, end: int, args: dict[str, int]) -> Event:
    return _event("X", name, track, begin) | {"dur": (end - begin) / 1e3, "args": args}


def _event(phase: str, name: str, track: int, time: int) -> Event:
    return {"ph": phase, "name": name, "cat": _CATEGORY, "tid": track, "ts": time}


def _metadata(what: str, track: int, **args: Any) -> Event:
    return {"ph": "M", "name": what, "tid": track, "args": args}
