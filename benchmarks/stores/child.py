"""One writer, reader or checker of one store, in a process of its own.

The parent writes lines to stdin, this answers with JSON lines:

    (start) -> {"opened": <seconds it took to open the store>} from a reader
            -> {"ready": true}                                   or   {"error": <one line>}
    go      -> {"told": <samples stored so far>} after each batch, from a writer that was started with --tell
            -> {"done": {...}}                                   or   {"error": <one line>}
    stop    -> ends a reader of the role "read_on"
"""

from __future__ import annotations

import argparse
import json
import select
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.stores.kinds import KINDS, Kind, Share, stamps
from benchmarks.stores.store import STORES, Reader, Store

_FIRST_S = 1.0  # at most, for the pass that fills the page tables of a reader
_WARM_S = 0.5
_LARGE = 24 << 20  # bytes: once so many were freed, malloc keeps what is freed, as in any process that had large arrays


def _say(**message: Any) -> None:
    print(json.dumps(message), flush=True)


class Writing:
    def __init__(self, store: Store, kind: Kind, share: Share, directory: Path, tell: bool) -> None:
        self._kind, self._share, self._tell = kind, share, tell
        self._records = kind.pattern()
        self._writer = store.writer(directory, kind, share.part)

    def run(self) -> dict[str, Any]:
        begin, busy, stored = time.perf_counter(), time.process_time(), 0
        for batch in self._share.of():
            self._writer.put(self._kind.stamp(self._records, batch), self._records)
            stored += self._kind.batch
            if self._tell:
                _say(told=stored)
        self._writer.close()
        busy = time.process_time() - busy
        return {"begin": begin, "end": time.perf_counter(), "samples": stored, "cpu_us": busy / stored * 1e6}


@dataclass(frozen=True)
class Pace:
    rate: float  # samples a second
    cpu_us: float  # a sample


class Reading:
    """Batches in random order, into one warm buffer."""

    def __init__(self, reader: Reader, kind: Kind, share: Share) -> None:
        self._reader, self._kind = reader, kind
        self._indices = share.indices(kind)
        self._random = np.random.default_rng()
        self._out = np.ones((kind.batch, kind.size), np.uint8)

    def warm(self) -> dict[str, Any]:
        first, warm = self._pace(self._first_pass(_FIRST_S)), self._pace(self._until(_WARM_S))
        return {"first": first.rate, "warm": warm.rate, "cpu_us": warm.cpu_us}

    def warm_up(self) -> None:
        self._pace(self._first_pass(_FIRST_S))

    def on(self) -> dict[str, Any]:
        return {"warm": self._pace(self._until_told()).rate}

    def _pace(self, batches: Iterator[np.ndarray]) -> Pace:
        begin, busy, done = time.perf_counter(), time.process_time(), 0
        for indices in batches:
            self._reader.read(indices, self._out)
            done += len(indices)
        busy = time.process_time() - busy
        return Pace(done / (time.perf_counter() - begin), busy / done * 1e6)

    def _epoch(self) -> np.ndarray:
        return self._random.permutation(self._indices).reshape(-1, self._kind.batch)

    def _first_pass(self, seconds: float) -> Iterator[np.ndarray]:
        end = time.perf_counter() + seconds
        for indices in self._epoch():
            yield indices
            if (stamps(self._out) != indices).any():
                raise ValueError("read other samples than were asked for")
            if time.perf_counter() > end:
                return

    def _until(self, seconds: float) -> Iterator[np.ndarray]:
        end = time.perf_counter() + seconds
        return self._epochs_while(lambda: time.perf_counter() < end)

    def _until_told(self) -> Iterator[np.ndarray]:
        return self._epochs_while(lambda: not select.select([sys.stdin], [], [], 0)[0])

    def _epochs_while(self, going: Callable[[], bool]) -> Iterator[np.ndarray]:
        while True:
            for indices in self._epoch():
                if not going():
                    return
                yield indices


class Checking:
    """What can be read, by whom it was written, and whether it is what was written."""

    def __init__(self, reader: Reader, kind: Kind) -> None:
        self._reader, self._kind = reader, kind

    def run(self) -> dict[str, Any]:
        pattern, out = self._kind.pattern(), np.empty((1, self._kind.size), np.uint8)
        readable, torn = [0, 0], 0
        for index in self._reader.present():
            self._reader.read(np.array([index]), out)
            expected = pattern[index % self._kind.batch]
            whole = stamps(out)[0] == index and (out[0, :-8] == expected[:-8]).all()
            readable[index // self._kind.batch % 2] += bool(whole)
            torn += not whole
        return {"readable": readable, "torn": torn}


def _open(store: Store, options: argparse.Namespace) -> Callable[[], dict[str, Any]]:
    kind = KINDS[options.kind]
    share = Share(options.part, options.parts, options.batches)
    if options.role == "write":
        return Writing(store, kind, share, options.directory, options.tell).run
    begin = time.perf_counter()
    reader = store.reader(options.directory, kind)
    _say(opened=time.perf_counter() - begin)
    if options.role == "check":
        return Checking(reader, kind).run
    reading = Reading(reader, kind, share)
    if options.role == "read":
        return reading.warm
    reading.warm_up()
    return reading.on


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=("write", "read", "read_on", "check"))
    parser.add_argument("store", choices=STORES)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("directory", type=Path)
    for name in ("part", "parts", "batches"):
        parser.add_argument(name, type=int)
    parser.add_argument("--tell", action="store_true")
    return parser.parse_args()


def main() -> None:
    options = _options()
    try:
        store = STORES[options.store]
        store.load()  # an import is not a part of opening
        np.ones(_LARGE, np.uint8)
        run = _open(store, options)
        _say(ready=True)
        sys.stdin.readline()
        _say(done=run())
    except Exception as error:
        _say(error=f"{type(error).__name__}: {error}".splitlines()[0][:200])


if __name__ == "__main__":
    main()
