"""What a SwiftLoader says of itself: the figures of each epoch, and of all of them at the end.

One JSON object a line, to ``benchmark_file``, else to the log. Times are in seconds and have the names of
``stoker.Stats``. Of ``writing``, ``collating`` and ``encoding`` are told apart where the user has functions for them.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import stoker
from stoker.compat.swift_loader.log import Log, LogOptions
from stoker.compat.swift_loader.options import Options
from stoker.compat.swift_loader.parcel import Parcel

Figures = dict[str, Any]

# Of stoker.Stats: what cannot be added up over epochs.
_NO_SUMS = "workers", "stations", "slowest", "slow_samples", "slots_made", "slots_filled", "setup", "processors"


class Report:
    """Collects one consumer's figures. Owns its log."""

    def __init__(self, options: Options, consumer: int) -> None:
        self._consumer = consumer
        self._file = options.benchmark_file
        self._is_on = options.writes_figures
        self._by_pid: dict[int, Figures] = {}
        if self._is_on and self._file is not None:
            open(self._file, "a", encoding="utf-8").close()  # a file that can't be written is better known now
        self.log = Log(LogOptions.of(options.logger), consumer)

    def opened(self, parcel: Parcel) -> Any:
        """The batch of a parcel that has arrived."""
        batch, pid, collating, encoding = parcel
        own = self._by_pid.setdefault(pid, {"batches": 0, "collating": 0, "encoding": 0})
        own["batches"] += 1
        own["collating"] += collating
        own["encoding"] += encoding
        return batch

    def figures(self, stats: stoker.Stats) -> Figures:
        """All figures since the start."""
        found = asdict(stats)
        for name in _NO_SUMS:
            del found[name]
        if self._by_pid:
            rows = {
                str(pid): own | {name: own[name] / 1e9 for name in ("collating", "encoding")}
                for pid, own in self._by_pid.items()
            }
            found |= {name: sum(row[name] for row in rows.values()) for name in ("collating", "encoding")}
            found["by_pid"] = rows
        return found

    def write(self, epoch: int | str, figures: Figures) -> None:
        if not self._is_on:
            return
        line = json.dumps({"consumer": self._consumer, "epoch": epoch} | figures)
        if self._file is None:
            self.log.write(line)
            return
        with open(self._file, "a", encoding="utf-8") as file:
            file.write(line + "\n")  # in one piece, so that consumers can share the file


def difference(now: Any, before: Any) -> Any:
    """What was added since: of each number, in whatever it is nested. Names stay as they are."""
    if isinstance(now, dict):
        return {key: difference(value, (before or {}).get(key)) for key, value in now.items()}
    if isinstance(now, list | tuple):
        return [difference(*pair) for pair in zip(now, before, strict=True)]
    return now if isinstance(now, str) else round(now - (before or 0), 9)
