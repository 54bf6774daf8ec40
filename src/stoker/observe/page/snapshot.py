"""What the page shows of one loader or stream at one moment, as JSON can hold it.

Times of the timeline are in milliseconds before the last batch was handed over, so that they stay small; all others
are in seconds, as in ``Stats``.
"""

from __future__ import annotations

import mmap
import os
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from stoker.observe.diagnosis import diagnose
from stoker.observe.recording import NOBODY, Row
from stoker.observe.stats import Stats

BARS = 300  # batches of the timeline
_POINTS, _PER_POINT = 120, 8  # of the rate over time: so many, of so many batches at least
_PAGE = mmap.PAGESIZE


@dataclass(frozen=True)
class Snapshot:
    """What is known of a loader or stream.

    Attributes:
        key: Tells it from all others of this machine, for as long as it lives.
        title: What it is, for the user.
        backend: Where its workers live.
        phase: "not started", "running" or "closed".
        epoch: That is being taken, or that comes next.
        shard: Which consumer it is, and of how many.
        pids: Its worker processes.
        stats: Its figures.
        rows: Its last batches, oldest first.
    """

    key: str
    title: str
    backend: str
    phase: str
    epoch: int
    shard: tuple[int, int]
    pids: tuple[int, ...]
    stats: Stats
    rows: list[Row]

    def to_dict(self, live: dict[str, Any] | None = None) -> dict[str, Any]:
        """``live``: a verdict that was found before, for a page that is updated. It sees the pace for itself."""
        from msgspec import to_builtins  # late: nothing but the page needs it

        return {
            "key": self.key,
            "title": self.title,
            "backend": self.backend,
            "phase": self.phase,
            "epoch": self.epoch,
            "shard": list(self.shard),
            "process": {"pid": os.getpid(), "host": _host(), "memory": resident_bytes(os.getpid())},
            "workers": [{"pid": pid, "memory": resident_bytes(pid)} for pid in self.pids],
            "taken": time.time(),
            "verdict": verdict(self.stats) if live is None else live,
            "stats": to_builtins(self.stats),
            "timeline": _timeline(self.rows[-BARS:]),
            "pace": _pace(self.rows) if live is None else None,
        }


def verdict(stats: Stats) -> dict[str, Any]:
    """The sentence on top, and the station that everything else waits for; None if it is none of them."""
    found = diagnose(stats)
    return {"sentence": found.sentence, "station": found.station or None}


def _host() -> str:
    """The name of this machine."""
    import platform  # late: nothing but the page needs it

    return platform.node()


def resident_bytes(pid: int) -> int:
    """Memory of a process of this machine, shared memory included; 0 where that is not known."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as told:
            return int(told.read().split()[1]) * _PAGE
    except (OSError, IndexError, ValueError):
        return 0


def _timeline(rows: list[Row]) -> dict[str, list[list[float]]]:
    """When workers were at which batch, and when the consumer waited. A step is what lies between two waits."""
    if not rows:
        return {"batches": [], "waits": []}
    columns: Any = Row(*np.array(rows, np.int64).T)
    moved = np.where(columns.moved > 0, columns.moved, columns.handed)
    spans = columns.began, columns.fetched, columns.written, columns.arrived, moved - columns.moving, moved
    about = columns.worker, columns.epoch, columns.position, columns.samples
    last = int(columns.handed[-1])
    is_made = columns.worker != NOBODY
    batches = zip(
        *(column[is_made].tolist() for column in about), *(_ms(at[is_made] - last) for at in spans), strict=True
    )
    waits = zip(_ms(columns.asked - last), _ms(columns.handed - last), strict=True)
    return {"batches": list(map(list, batches)), "waits": list(map(list, waits))}


def _ms(nanoseconds: Any) -> list[float]:
    return np.round(nanoseconds / 1e6, 3).tolist()  # type: ignore[no-any-return]


def _pace(rows: list[Row]) -> dict[str, list[float]]:
    """Samples a second and the share of time that was waited, over the time of the last batches."""
    nothing: dict[str, list[float]] = {"seconds": [], "samples": [], "waited": []}
    if len(rows) < 3:
        return nothing
    columns = Row(*np.array(rows, np.int64).T)
    handed: Any = columns.handed
    edges = np.linspace(int(handed[0]), int(handed[-1]), min(_POINTS, 1 + len(rows) // _PER_POINT) + 1)
    width = float(edges[1] - edges[0]) / 1e9
    if width <= 0:
        return nothing
    # A batch came in the time since the one before; so rare ones do not make a comb.
    reached = np.interp(edges, handed, np.cumsum(columns.samples))
    waits = np.interp(edges, handed, np.cumsum(np.minimum(columns.handed - columns.asked, np.diff(handed, prepend=0))))
    return {
        "seconds": [round(float(at - edges[-1]) / 1e9, 4) for at in edges[1:]],
        "samples": [round(float(count), 2) for count in np.diff(reached) / width],
        "waited": [round(min(float(share), 1.0), 4) for share in np.diff(waits) / 1e9 / width],
    }
