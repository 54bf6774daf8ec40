"""One store, one kind, one round: filled, read, read while it is filled, and a writer killed."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.stores.kinds import Kind, Share
from benchmarks.stores.process import Child
from benchmarks.stores.quiet import Patience
from benchmarks.stores.store import Store

_KILL_BATCHES = 8  # at least, so that there is a middle to be killed in


@dataclass(frozen=True)
class Kill:
    """Two writers, of which one is killed halfway through its share; the other goes on to the end of its own."""

    told: int  # samples the dead one had said to be stored
    readable: int  # of the dead one's
    torn: int  # of all
    missing: int  # of the survivor's


@dataclass(frozen=True)
class Round:
    """Rates are samples a second, of all processes together."""

    fill_1: float
    fill_2: float
    read_1: float
    read_2: float
    first_1: float  # reading for the first time in a process: its page tables are still empty
    first_2: float
    mixed_fill: float  # one writer and one reader at once
    mixed_read: float
    fill_cpu_us: float  # a sample, by one process
    read_cpu_us: float
    open_s: float
    disk_bytes: float  # a sample
    kill: Kill | None
    others: list[float]  # cores used by strangers in each step


@dataclass(frozen=True)
class FillRate:
    rate: float
    cpu_us: float  # a sample


@dataclass(frozen=True)
class ReadRate:
    first: float
    warm: float
    cpu_us: float  # a sample, warm
    open_s: float


@dataclass(frozen=True)
class MixedRate:
    fill: float
    read: float


class Measurement:
    """Each step stands by itself, in a folder of its own, so that it can be taken again."""

    def __init__(self, store: Store, kind: Kind, scratch: Path, patience: Patience) -> None:
        self._store, self._kind, self._scratch, self._patience = store, kind, scratch, patience
        self._batches = kind.batches // store.fewer
        self._all = Share(0, 1, self._batches)
        self._halves = [Share(part, 2, self._batches) for part in range(2)]
        self._children: list[Child] = []

    def run(self) -> Round:
        try:
            return self._round()
        finally:
            for child in self._children:
                child.kill()

    def _round(self) -> Round:
        quietest = self._patience.quietest
        fill_1 = quietest(lambda: self._filled(self._halves[:1]))
        fill_2 = quietest(lambda: self._filled(self._halves))
        mixed = quietest(self._mixed)
        with self._directory() as directory:
            self._fill(directory, [self._all])
            one = quietest(lambda: self._read(directory, 1))
            two = quietest(lambda: self._read(directory, 2))
            disk = _disk_bytes(directory) / (self._batches * self._kind.batch)
        return Round(
            fill_1=fill_1.result.rate,
            fill_2=fill_2.result.rate,
            read_1=one.result.warm,
            read_2=two.result.warm,
            first_1=one.result.first,
            first_2=two.result.first,
            mixed_fill=mixed.result.fill,
            mixed_read=mixed.result.read,
            fill_cpu_us=fill_1.result.cpu_us,
            read_cpu_us=one.result.cpu_us,
            open_s=one.result.open_s,
            disk_bytes=disk,
            kill=self._killed() if self._store.knows_what_it_holds else None,
            others=[round(step.others, 2) for step in (fill_1, fill_2, mixed, one, two)],
        )

    def _filled(self, shares: list[Share]) -> FillRate:
        with self._directory() as directory:
            return self._fill(directory, shares, rehearse=True)

    def _fill(self, directory: Path, shares: list[Share], rehearse: bool = False) -> FillRate:
        children = [self._child("write", directory, share) for share in shares]  # one by one: the first makes it
        if rehearse:
            self._rehearse(shares)
        return _written(children)

    def _mixed(self) -> MixedRate:
        with self._directory() as directory:
            self._fill(directory, self._halves[:1])
            reader = self._child("read_on", directory, self._halves[0])
            writer = self._child("write", directory, self._halves[1])
            self._rehearse(self._halves[1:])
            reader.say("go")
            filled = _written([writer])
            reader.say("stop")
            return MixedRate(filled.rate, reader.done()["warm"])

    def _rehearse(self, shares: list[Share]) -> None:
        """The same fill elsewhere, deleted at once: the real one then finds its memory warm.

        Under a hypervisor free memory may be given back to the host within a second, and is slow to come again: a
        first gigabyte was written at 0.7 GB/s here, the same one again at 5 GB/s, whatever the store.
        """
        with self._directory() as directory:
            self._fill(directory, shares)

    def _read(self, directory: Path, readers: int) -> ReadRate:
        children = [self._child("read", directory, self._all) for _ in range(readers)]
        for child in children:
            child.say("go")
        done = [child.done() for child in children]
        first, warm = (sum(one[name] for one in done) for name in ("first", "warm"))
        return ReadRate(first, warm, done[0]["cpu_us"], children[0].open_s)

    def _killed(self) -> Kill:
        shares = [Share(part, 2, max(self._batches // 4, _KILL_BATCHES)) for part in range(2)]
        half = len(shares[1].of()) // 2 * self._kind.batch
        with self._directory() as directory:
            survivor, victim = (self._child("write", directory, share, tell=share.part == 1) for share in shares)
            survivor.say("go")
            told = _kill_at(half, victim)
            stored = survivor.done()["samples"]
            checker = self._child("check", directory, self._all)
            checker.say("go")
            found = checker.done()
        return Kill(told, found["readable"][1], found["torn"], stored - found["readable"][0])

    def _child(self, role: str, directory: Path, share: Share, tell: bool = False) -> Child:
        self._children.append(Child(role, self._store, self._kind, directory, share, tell))
        return self._children[-1]

    @contextmanager
    def _directory(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(dir=self._scratch) as directory:
            yield Path(directory)


def _written(children: list[Child]) -> FillRate:
    for child in children:
        child.say("go")
    done = [child.done() for child in children]
    took = max(one["end"] for one in done) - min(one["begin"] for one in done)
    return FillRate(sum(one["samples"] for one in done) / took, done[0]["cpu_us"])


def _kill_at(samples: int, victim: Child) -> int:
    """Kills a writer as soon as it has told of so many samples; returns of how many it had told when it died."""
    victim.say("go")
    told = 0
    while told < samples:
        told = victim.told()
    return max([told, *(one["told"] for one in victim.kill() if "told" in one)])


def _disk_bytes(directory: Path) -> int:
    return sum(path.stat().st_blocks for path in directory.rglob("*")) * 512
