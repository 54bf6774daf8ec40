"""Files of traces: written, read, and put together on one axis of time."""

from __future__ import annotations

import functools
import gzip
import itertools
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from stoker.observe.trace_events import ABOVE_PIDS, Event

_BASE = "baseTimeNanoseconds"  # of the Unix epoch: the moment that is 0 in the file, as torch's profiler has it, too
_AT_A_TIME = 10_000  # events that are written
_WITH_ID = frozenset("stfbne")  # phases of arrows and of asynchronous spans
_ID_BITS = 40  # for the ids of each file, of the 53 that JSON's numbers have


def write_trace(path: str | os.PathLike[str], found: Iterable[Event], base: int) -> None:
    """``base``: nanoseconds of the Unix epoch."""
    _write(path, {"displayTimeUnit": "ms", _BASE: base}, found)


def merge_traces(into: str | os.PathLike[str], first: str | os.PathLike[str], *others: str | os.PathLike[str]) -> None:
    """Puts several traces together in one file, on one axis of time: of loaders, of ranks, of torch's profiler.

    What a torch profile knows of the first file is kept, such as the properties of devices.

    Args:
        into: The file to write. A name that ends in ``.gz`` is compressed, also of files that are read.
        first: A file that ``loader.trace`` or ``torch.profiler``'s ``export_chrome_trace`` has written.
        others: More of these.

    Raises:
        ValueError: A file is no such trace.

    Example:
        >>> import os, tempfile, numpy as np, stoker
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     train, test, both = (os.path.join(folder, name) for name in ("train.json", "test.json", "both.json"))
        ...     for path in (train, test):
        ...         with stoker.Loader(np.arange(8), 4) as loader, loader.trace(path):
        ...             batches = list(loader)
        ...     stoker.merge_traces(both, train, test)
        ...     os.path.getsize(both) > os.path.getsize(train)
        True
    """
    traces = [_read(path) for path in (first, *others)]
    base = min(trace[_BASE] for trace in traces)
    merged: list[Iterator[Event]] = []
    groups: set[Any] = set()  # that are taken
    tracks: set[Any] = set()
    for number, trace in enumerate(traces):
        found, later = trace["traceEvents"], (trace[_BASE] - base) / 1e3
        of_groups = _free_ids({event.get("pid") for event in found}, groups)
        of_tracks = _free_ids({event.get("tid") for event in found if _is_ours(event)}, tracks)
        move = functools.partial(_moved, later=later, groups=of_groups, tracks=of_tracks, ids=number << _ID_BITS)
        merged.append(map(move, found))
        groups.update(of_groups.values())
        tracks.update(of_tracks.values())
    about = {name: value for name, value in traces[0].items() if name != "traceEvents"}
    _write(into, about | {_BASE: base}, itertools.chain.from_iterable(merged))


def _is_ours(event: Event) -> bool:
    """Tracks of others have the ids of their threads, which are left alone."""
    group = event.get("pid")
    return isinstance(group, int) and group >= ABOVE_PIDS


def _moved(event: Event, later: float, groups: dict[Any, Any], tracks: dict[Any, Any], ids: int) -> Event:
    changed = dict(event)
    if "ts" in event:
        changed["ts"] = event["ts"] + later
    if "pid" in event:
        changed["pid"] = groups[event["pid"]]
    if _is_ours(event):
        changed["tid"] = tracks[event["tid"]]
    if event.get("ph") in _WITH_ID and isinstance(event.get("id"), int):
        changed["id"] = event["id"] + ids
    return changed


def _free_ids(wanted: set[Any], taken: set[Any]) -> dict[Any, Any]:
    """A number for each group or track: its own, unless one of an earlier file has that."""
    numbers = [one for one in wanted | taken if isinstance(one, int)]
    free = max(numbers, default=0) + 1
    found = {}
    for one in sorted(wanted, key=str):
        found[one] = one
        if one in taken:
            found[one], free = free, free + 1
    return found


def _read(path: str | os.PathLike[str]) -> dict[str, Any]:
    import msgspec

    content = Path(path).read_bytes()
    if os.fspath(path).endswith(".gz"):
        content = gzip.decompress(content)
    try:
        trace = msgspec.json.decode(content)
    except msgspec.DecodeError as error:
        raise ValueError(f"{os.fspath(path)} is no JSON: {error}") from None
    match trace:
        case {"traceEvents": [*_], "baseTimeNanoseconds": int()}:
            return trace  # type: ignore[no-any-return]
    raise ValueError(
        f"{os.fspath(path)} has no traceEvents or no {_BASE}, so its times cannot be set beside others: pass a file "
        f"of loader.trace, or of torch.profiler's export_chrome_trace (torch 2.4 or newer)"
    )


def _write(path: str | os.PathLike[str], about: dict[str, Any], found: Iterable[Event]) -> None:
    """``about``: what stands beside the events."""
    import msgspec  # not with ``import stoker``

    encode, left = msgspec.json.encode, iter(found)
    with gzip.open(path, "wb") if os.fspath(path).endswith(".gz") else open(path, "wb") as file:
        file.write(encode(about)[:-1] + b',"traceEvents":[')
        separator = b""
        while some := list(itertools.islice(left, _AT_A_TIME)):
            file.write(separator + encode(some)[1:-1])
            separator = b",\n"
        file.write(b"]}")
