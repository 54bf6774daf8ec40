"""A life: one dataset and plan, how it is read, and what goes wrong on the way. Drawn at random, from one seed."""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from stoker import Inline, Loader, Processes, Threads
from tests.soak.dataset import Troubled
from tests.soak.files import TroubledFiles
from tests.soak.harm import BOTH, KILLS, NURSERY, STOP
from tests.soak.keeping import CACHE, ON_DISK, ROTATION, Keep, any_keep

Draw = Callable[[random.Random], Any]

_MANY = 1_000_000  # max_deaths where workers are killed at random, which may hit one batch again and again


def any_process(chance: random.Random) -> Processes:
    start = chance.choice(["nursery", "nursery", "nursery", "fork", "fork", "spawn"])
    return Processes(chance.randrange(1, 5), start=start)


def any_threads(chance: random.Random) -> Threads:
    return Threads(chance.randrange(1, 4))


def any_workers(chance: random.Random) -> Any:
    kind = chance.random()
    if kind < 0.08:
        return Inline()
    return Threads(chance.randrange(1, 5)) if kind < 0.25 else any_process(chance)


def few_workers(chance: random.Random) -> Any:
    """For shards, of which several are open at a time."""
    kind = chance.random()
    if kind < 0.3:
        return Threads(1)
    return Processes(chance.randrange(1, 3), start="fork" if kind < 0.45 else "nursery")


@dataclass(frozen=True)
class Life:
    """What is the same for all its loaders.

    Attributes:
        kind: For the report.
        dataset: With its troubles.
        plan: Options of the loader that make the stream.
        policy: Those that say what becomes of trouble.
        epochs: How many to read.
        workers: Draws a backend, for each loader another.
        shards: It is read over several, and re-sharded.
        items: Its indices are the items of a stream.
        torch: It is read with the drop-in for torch's loader.
        keep: Samples that are kept for later epochs, or uses.
        harms: What may be done to workers.
        often: How likely that is before a batch.
    """

    kind: str
    dataset: Troubled | TroubledFiles
    plan: dict[str, Any]
    policy: dict[str, Any] = field(default_factory=dict)
    epochs: int = 2
    workers: Draw = any_workers
    shards: bool = False
    items: bool = False
    torch: bool = False
    keep: Keep = field(default_factory=Keep)
    harms: tuple[str, ...] = ()
    often: float = 0.0

    def loader(self, chance: random.Random, folder: Path, **options: Any) -> Loader[Any]:
        """``folder``: where the dataset's files are, if it has any."""
        workers, prefetch = self.workers(chance), chance.choice([1, 2, 2, 3, 4, 8])
        options |= {"workers": workers, "prefetch": prefetch}
        return Loader(self.dataset.at(folder), **self.plan, **self.policy, **options)

    def oracle(self, folder: Path, **options: Any) -> Loader[Any]:
        """The undisturbed stream. It has the same policy, and a quarantine file of its own."""
        policy = {key: value for key, value in self.policy.items() if key in ("on_error",)}
        plan = {key: value for key, value in self.plan.items() if key != "in_order"}
        return Loader(self.dataset.tamed().at(folder), workers=Inline(), **plan, **policy, **options)

    def quarantine(self, file: Path) -> dict[str, Any]:
        """The option for that file, if there is to be one."""
        return {"quarantine": file} if self.policy.get("on_error") == "quarantine" else {}

    def order(self) -> Loader[Any]:
        """The bare indices, one by one, in the order of each epoch."""
        plan = {key: self.plan[key] for key in ("shuffle", "seed")}
        return Loader(np.arange(self.dataset.length), None, workers=Inline(), **plan)


def killed(chance: random.Random) -> Life:
    """Workers, and now and then the nursery, are killed and stopped; samples are slow and fail."""
    plan = _plan(chance, [None, 1, 3, 8, 32]) | {"in_order": chance.random() < 0.75}
    longest = 200 if plan["batch_size"] in (None, 1) else 600
    length = chance.randrange(20, longest)
    failing, policy = _failures(chance, length)
    dataset = Troubled(
        length,
        width=chance.choice([4, 4, 1000, 20_000]),
        slow=_slow(chance, length) if chance.random() < 0.4 else {},
        failing=failing,
    )
    return Life(
        "killed",
        dataset,
        plan,
        policy | {"max_deaths": _MANY},
        epochs=chance.choice([2, 3]),
        keep=any_keep(chance, ROTATION, ROTATION, ON_DISK, CACHE, CACHE),
        harms=(*KILLS, *KILLS, STOP, STOP, NURSERY, BOTH),
        often=chance.choice([0.0, 0.05, 0.1, 0.3]),
    )


def deadly(chance: random.Random) -> Life:
    """One or two samples kill whoever makes them; just these are to be left out."""
    length = chance.randrange(20, 80)
    failing, _ = _failures(chance, length)
    doomed = frozenset(chance.sample(range(length), chance.choice([1, 1, 2])))
    dataset = Troubled(
        length, failing=failing - doomed, deadly=doomed, death=chance.choice(["exit", "segmentation fault"])
    )
    plan = _plan(chance, [1, 4, 8, 16]) | {"in_order": chance.random() < 0.75}
    policy = {"on_error": "quarantine", "max_deaths": chance.randrange(1, 4)}
    keep = any_keep(chance, ROTATION, CACHE)
    return Life("deadly", dataset, plan, policy, workers=any_process, keep=keep, harms=(STOP,), often=0.05)


def hanging(chance: random.Random) -> Life:
    """One sample never comes to an end."""
    length = chance.randrange(20, 60)
    stuck = frozenset([chance.randrange(length)])
    in_threads = chance.random() < 0.25
    dataset = Troubled(length, hanging=stuck, hang_s=2.0 if in_threads else 3600.0)  # a thread can't be killed
    plan = _plan(chance, [1, 4, 8]) | {"in_order": chance.random() < 0.75}
    policy = {"on_error": "skip", "max_deaths": chance.randrange(1, 3), "timeout": 0.5}
    workers = any_threads if in_threads else any_process
    keep = any_keep(chance, ROTATION, CACHE)
    return Life("hanging", dataset, plan, policy, epochs=chance.choice([1, 2]), workers=workers, keep=keep)


def sharded(chance: random.Random) -> Life:
    """Read over several shards, and over another number of them from some step on."""
    plan = _plan(chance, [None, 1, 4, 16])
    length = chance.randrange(20, 120 if plan["batch_size"] in (None, 1) else 400)
    failing, policy = _failures(chance, length) if plan["batch_size"] == 16 else (frozenset(), {})
    return Life(
        "sharded",
        Troubled(length, failing=failing),
        plan,
        policy | {"max_deaths": _MANY},
        workers=few_workers,
        shards=True,
        keep=any_keep(chance, CACHE),
        harms=(*KILLS, STOP, NURSERY, BOTH),
        often=chance.choice([0.0, 0.05, 0.1]),
    )


def chunked(chance: random.Random) -> Life:
    """Files instead of indices, perhaps those of one shard; workers are killed and stopped, files slow or broken."""
    sizes = tuple(chance.choice([0, 1, 5, chance.randrange(60)]) for _ in range(chance.randrange(2, 12)))
    failing, policy = _failures(chance, len(sizes)) if sum(sizes) else (frozenset(), {})
    across_chunks = chance.random() < 0.7
    shard = (chance.randrange(2), 2) if across_chunks and not failing and chance.random() < 0.3 else None
    dataset = TroubledFiles(
        sizes,
        width=chance.choice([4, 4, 1000, 20_000]),
        interleave=chance.choice([1, 2, 4, 20]),
        across_chunks=across_chunks,
        slow=_slow(chance, len(sizes)) if chance.random() < 0.4 else {},
        failing=failing,
    )
    plan = _plan(chance, [None, 1, 3, 8, 32]) | {"shuffle": chance.random() < 0.6, "shard": shard}
    return Life(
        "chunked",
        dataset,
        # Out of order, batches across files would have other samples.
        plan | {"in_order": across_chunks or chance.random() < 0.5},
        policy | {"max_deaths": _MANY},
        epochs=chance.choice([2, 3]),
        harms=(*KILLS, *KILLS, STOP, STOP, NURSERY, BOTH),
        often=chance.choice([0.0, 0.05, 0.1, 0.3]),
    )


def streamed(chance: random.Random) -> Life:
    """Items of a stream instead of a dataset; workers are killed and stopped, work is slow and fails."""
    length = chance.randrange(1, 200)
    failing, policy = _failures(chance, length) if length > 20 else (frozenset(), {})
    slow = _slow(chance, length) if chance.random() < 0.4 else {}
    return Life(
        "streamed",
        Troubled(length, width=chance.choice([4, 1000]), slow=slow, failing=failing),
        {"in_order": chance.random() < 0.7},
        policy | {"max_deaths": _MANY},
        items=True,
        harms=(*KILLS, *KILLS, STOP, STOP, NURSERY, BOTH),
        often=chance.choice([0.0, 0.05, 0.1, 0.3]),
    )


def dropped_in(chance: random.Random) -> Life:
    """Read with the drop-in for torch's loader; workers are killed and stopped, samples are slow."""
    length = chance.randrange(20, 400)
    plan = _plan(chance, [1, 3, 8, 32])
    return Life(
        "dropped_in",
        Troubled(length, width=chance.choice([4, 1000]), slow=_slow(chance, length) if chance.random() < 0.4 else {}),
        plan
        | {
            "shuffle": bool(plan["shuffle"]),
            "in_order": chance.random() < 0.75,
            "persistent_workers": chance.random() < 0.3,
        },
        epochs=chance.choice([2, 3]),
        torch=True,
        harms=(*KILLS, STOP, NURSERY),
        often=chance.choice([0.0, 0.05, 0.1, 0.3]),
    )


_HAS_TORCH = importlib.util.find_spec("torch") is not None

KINDS = {
    "killed": killed,
    "deadly": deadly,
    "hanging": hanging,
    "sharded": sharded,
    "chunked": chunked,
    "streamed": streamed,
    "dropped_in": dropped_in,
}


def draw_life(chance: random.Random) -> Life:
    """Any life."""
    (kind,) = chance.choices(list(KINDS), [40, 10, 7, 13, 12, 8, 10 if _HAS_TORCH else 0])
    return KINDS[kind](chance)


def _plan(chance: random.Random, batch_sizes: list[int | None]) -> dict[str, Any]:
    return {
        "batch_size": chance.choice(batch_sizes),
        "shuffle": chance.choice([False, True, 10]),
        "seed": chance.randrange(1000),
        "drop_last": chance.random() < 0.2,
    }


def _failures(chance: random.Random, length: int) -> tuple[frozenset[int], dict[str, Any]]:
    """A few samples that fail, and what becomes of them. Too few to fill a batch of 16."""
    if chance.random() < 0.6:
        return frozenset(), {}
    failing = frozenset(chance.sample(range(length), min(length - 1, chance.randrange(1, 6))))
    return failing, {"on_error": chance.choice(["skip", "quarantine"])}


def _slow(chance: random.Random, length: int) -> dict[int, float]:
    return {
        index: chance.uniform(0.002, 0.05)
        for index in chance.sample(range(length), min(length, chance.randrange(1, 8)))
    }
