"""Snapshots of loaders that never ran, as rows would have told them."""

from __future__ import annotations

from dataclasses import replace

from stoker.engine import Usage
from stoker.observe import Meter
from stoker.observe.page import Snapshot
from stoker.observe.recording import pack

MS = 1_000_000  # nanoseconds

_BATCHES = 50
_NBYTES = 32 * 12_288


def snapshot(
    *,
    title: str = "Loader(Made, batch_size=32, shuffle=True)",
    key: str = "1-0",
    shard: tuple[int, int] = (0, 1),
    fetch: int = 20,
    write: int = 1,
    wait: int = 0,
    step: int = 10,
    move: int = 0,
    deaths: int = 0,
    nodes: tuple[str, ...] = ("", ""),
) -> Snapshot:
    """Two workers, one batch after the other: so many milliseconds at each station."""
    meter = Meter(2)
    now = 1_000 * MS
    meter._began = now
    for number in range(_BATCHES):
        asked, handed = now, now + (wait + move) * MS
        began = asked - (fetch + write) * MS + wait * MS
        fetched, written = began + fetch * MS, began + (fetch + write) * MS
        times = began, began, fetched, written, written, asked, wait * MS, move * MS, handed, handed
        meter._recording.add(pack(number % 2, 0, 32 * number, 32, 32, _NBYTES, MS, *times))
        now = handed + step * MS
        meter._ended = handed
        meter._waited += (wait + move) * MS
        meter._moving += move * MS
    meter._batches, meter._samples, meter._nbytes = _BATCHES, 32 * _BATCHES, _BATCHES * _NBYTES
    stats = replace(meter.stats(Usage(3, 2, 8, 1, nodes)), deaths=deaths)
    return Snapshot(key, title, "Processes(n=2)", "running", 0, shard, (), stats, meter.recent())
