"""``python -m tests.soak --minutes 5``: what was delivered and survived; exits 1 if anything was lost or changed."""

from __future__ import annotations

import argparse
import logging
import os
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import psutil
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from stoker import Inline, Loader, Processes, Threads
from tests.datasets import Augmented
from tests.streams import assert_same, kept


@dataclass
class Tally:
    loaders: int = 0
    batches: int = 0
    kills: int = 0
    resumes: int = 0
    wrong: list[str] = field(default_factory=list)


def main() -> int:
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    logging.getLogger("stoker").setLevel(logging.ERROR)  # each kill would be a line
    print(f"soak: {options.minutes:g} minutes, seed {options.seed}")
    chance = random.Random(options.seed)
    tally, before = Tally(), _holdings()
    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    with Progress(*columns) as progress:
        task = progress.add_task("", total=options.minutes * 60)
        began = time.monotonic()
        while (elapsed := time.monotonic() - began) < options.minutes * 60 and not tally.wrong:
            words = f"{tally.batches} batches, {tally.kills} kills, {tally.resumes} resumes"
            progress.update(task, completed=elapsed, description=words)
            _one_life(chance, tally)
    return _report(tally, before)


def _one_life(chance: random.Random, tally: Tally) -> None:
    """One dataset and plan, read through several loaders, each resumed from the one before."""
    plan: dict[str, Any] = {
        "batch_size": chance.choice([1, 3, 8, 32]),
        "shuffle": chance.choice([False, True, 10]),
        "seed": chance.randrange(1000),
    }
    dataset = Augmented(chance.randrange(20, 300))
    with Loader(dataset, workers=Inline(), **plan) as oracle:
        wanted = [kept(batch) for _ in range(3) for batch in oracle]
    place, state = 0, None
    while place < len(wanted) and not tally.wrong:
        workers = chance.choice([Threads(3), Processes(1), Processes(4), Processes(2, start="fork")])
        with Loader(dataset, workers=workers, prefetch=chance.randrange(1, 4), **plan) as loader:
            if state is not None:
                loader.load_state_dict(state)
                tally.resumes += 1
            place = _read(loader, wanted, place, chance, tally)
            state = loader.state_dict()
        tally.loaders += 1


def _read(loader: Loader[Any], wanted: list[Any], place: int, chance: random.Random, tally: Tally) -> int:
    """Reads on from ``place`` for a while, killing workers; gives the new place."""
    stop = min(len(wanted), place + chance.randrange(1, 60))
    held = []
    while place < stop:
        for batch in loader:
            held.append((batch, place))
            place += 1
            tally.batches += 1
            if chance.random() < 0.05:
                tally.kills += _kill_one(chance)
            if chance.random() < 0.3:
                held = held[-chance.randrange(1, 8) :]
            if place == stop:
                break
    for batch, number in held:
        try:
            assert_same(batch, wanted[number])
        except AssertionError as error:
            tally.wrong.append(f"batch {number}: {error}")
    return place


def _kill_one(chance: random.Random) -> int:
    """Kills a worker, never the nursery: 1 if there was one."""
    workers = [process for process in psutil.Process().children(recursive=True) if _is_worker(process)]
    try:
        chance.choice(workers).kill()
    except (IndexError, psutil.NoSuchProcess):  # there was none, or it has just ended
        return 0
    return 1


def _is_worker(process: psutil.Process) -> bool:
    """A nursery's workers have its command line: the nursery itself is the one that is our own child."""
    try:
        return process.ppid() != os.getpid() or "nursery import main" not in " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return False


def _holdings() -> Counter[str]:
    process = psutil.Process()
    return Counter(
        descriptors=len(os.listdir("/proc/self/fd")),
        megabytes=process.memory_info().rss // 2**20,
        children=len(process.children(recursive=True)),
    )


def _report(tally: Tally, before: Counter[str]) -> int:
    after = _holdings()
    print(f"{tally.loaders} loaders, {tally.batches} batches, {tally.kills} workers killed, {tally.resumes} resumes")
    print(f"lost, repeated or changed: {len(tally.wrong)}")
    for name in before:
        print(f"{name}: {before[name]} at the start, {after[name]} at the end")
    for words in tally.wrong:
        print(words)
    leaked = after["descriptors"] > before["descriptors"] or after["children"] > before["children"]
    return 1 if tally.wrong or leaked else 0


if __name__ == "__main__":
    raise SystemExit(main())
