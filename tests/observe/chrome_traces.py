"""The Chrome JSON trace format, as published: what each kind of event must have, and how events belong together."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

NEEDED: dict[str, dict[str, Any]] = {
    "X": {"name": str, "ts": (int, float), "dur": (int, float), "pid": int, "tid": int},
    "M": {"name": str, "pid": int, "tid": int, "args": dict},
    "i": {"name": str, "ts": (int, float), "pid": int, "tid": int, "s": str},
    **{phase: {"name": str, "cat": str, "id": int, "ts": (int, float), "pid": int, "tid": int} for phase in "besf"},
}
METADATA = {"process_name": "name", "thread_name": "name", "process_sort_index": "sort_index"}
METADATA |= {"thread_sort_index": "sort_index"}
EXACT = 1e-4  # microseconds: a tenth of a nanosecond, which is what numbers in JSON lose


def read(path: Path) -> list[dict[str, Any]]:
    """The events of a file that was checked."""
    trace = json.loads(Path(path).read_text())
    assert isinstance(trace["traceEvents"], list)
    assert trace["displayTimeUnit"] in ("ms", "ns")
    assert isinstance(trace["baseTimeNanoseconds"], int)
    check(trace["traceEvents"])
    return trace["traceEvents"]


def check(events: list[dict[str, Any]]) -> None:
    for event in events:
        for name, kind in NEEDED[event["ph"]].items():
            assert isinstance(event[name], kind), event
        assert event.get("ts", 0) >= 0, event
        if event["ph"] == "M":
            assert METADATA[event["name"]] in event["args"]
        assert event["ph"] != "i" or event["s"] in "gpt"
    tracks = {(event["pid"], event["tid"]) for event in events}
    assert len({tid for _, tid in tracks}) == len(tracks), "Perfetto finds a track's name by its tid alone"
    check_nesting(events)
    check_async(events)
    check_arrows(events)


def spans(events: list[dict[str, Any]], name: str | None = None) -> list[dict[str, Any]]:
    return [event for event in events if event["ph"] == "X" and name in (None, event["name"])]


def by_track(events: list[dict[str, Any]]) -> dict[tuple[int, int], list[dict[str, Any]]]:
    tracks = defaultdict(list)
    for event in spans(events):
        assert event["dur"] >= 0, event
        tracks[event["pid"], event["tid"]].append(event)
    return tracks


def check_nesting(events: list[dict[str, Any]]) -> None:
    """Spans of a track lie beside or within each other."""
    for own in by_track(events).values():
        open_ends: list[float] = []
        for event in sorted(own, key=lambda event: (event["ts"], -event["dur"])):
            while open_ends and open_ends[-1] <= event["ts"] + EXACT:
                open_ends.pop()
            assert not open_ends or event["ts"] + event["dur"] <= open_ends[-1] + EXACT, event
            open_ends.append(event["ts"] + event["dur"])


def check_async(events: list[dict[str, Any]]) -> None:
    """Each that begins ends, and later."""
    begun: dict[Any, float] = {}
    for event in events:
        key = event.get("cat"), event.get("id"), event["pid"]
        if event["ph"] == "b":
            assert key not in begun
            begun[key] = event["ts"]
        elif event["ph"] == "e":
            assert event["ts"] >= begun.pop(key)
    assert not begun


def check_arrows(events: list[dict[str, Any]]) -> None:
    """Each arrow begins at one span, which stands before it, and ends at another that begins no earlier.

    Perfetto takes the last span of the track that it has read when it comes to an end of an arrow, and turns an arrow
    around that leads to a span which began earlier.
    """
    begins = {event["id"]: event for event in events if event["ph"] == "s"}
    ends = {event["id"]: event for event in events if event["ph"] == "f"}
    assert len(begins) == sum(event["ph"] == "s" for event in events), "no id twice"
    assert begins.keys() == ends.keys()
    last: dict[tuple[int, int], dict[str, Any]] = {}
    bound = {}
    for event in sorted((event for event in events if event["ph"] in "Xsf"), key=lambda event: event["ts"]):
        track = event["pid"], event["tid"]
        if event["ph"] == "X":
            last[track] = event
        else:
            assert last[track]["ts"] == event["ts"], event
            bound[event["ph"], event["id"]] = last[track]
    for number in begins:
        begin, end = bound["s", number], bound["f", number]
        assert begin["ts"] <= end["ts"]
        assert begin["args"] == end["args"], "of the same batch"
        assert (begin["name"], end["name"]) == ("write", "step")
        assert ends[number]["bp"] == "e"


def track_names(events: list[dict[str, Any]]) -> dict[tuple[int, int], str]:
    return {
        (event["pid"], event["tid"]): event["args"]["name"]
        for event in events
        if event["ph"] == "M" and event["name"] == "thread_name"
    }
