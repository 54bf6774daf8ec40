"""A node of a Ray cluster is killed, as if its power was cut: how long the stream stands still, and how much of that it
takes Ray to find out. Ray's health checks are as it has them by default."""

from __future__ import annotations

import logging
import threading
from time import perf_counter, sleep
from typing import Any

import stoker
from benchmarks.datasets import Waiting
from benchmarks.probes.ray_cluster import cluster

_WAIT_S = 0.005  # a sample
_BATCH = 8
_LEAD_IN = 20  # batches
_CPUS = 3  # of a node: two workers, and an actor of the probe's own


class Sleeper:
    """Has a call that does not end, which Ray fails once it knows that the node is gone."""

    def ready(self) -> None: ...

    def sleep(self) -> None:
        sleep(10**6)


def measure() -> dict[str, float]:
    """Seconds from the kill until the `stream` goes on, and until Ray has `found` that an actor there is dead."""
    logging.getLogger("stoker").setLevel(logging.ERROR)
    with cluster(nodes=2, cpus=_CPUS) as made:
        victim = made.list_all_nodes()[-1]
        found: list[float] = []
        watch = _watch(victim.node_id, found)
        with stoker.Loader(Waiting(10**7, _WAIT_S), _BATCH, workers=stoker.Ray(4)) as loader:
            batches = iter(loader)
            for _ in range(_LEAD_IN):
                next(batches)
            killed = perf_counter()
            made.remove_node(victim, allow_graceful=False)
            longest, last, ended = 0.0, perf_counter(), killed
            while perf_counter() - ended < 5.0 or not found:
                next(batches)
                now = perf_counter()
                if now - last > longest:
                    longest, ended = now - last, now
                last = now
        watch.join()
        return {"stream": ended - killed, "found": found[0] - killed}


def _watch(node: str, found: list[float]) -> threading.Thread:
    """Notes when Ray says that an actor on that node is dead."""
    import ray
    from ray.exceptions import RayActorError
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    there = NodeAffinitySchedulingStrategy(node, soft=False)
    sleeper: Any = ray.remote(num_cpus=1)(Sleeper).options(scheduling_strategy=there).remote()
    ray.get(sleeper.ready.remote())
    call = sleeper.sleep.remote()

    def wait() -> None:
        try:
            ray.get(call)
        except RayActorError:
            found.append(perf_counter())

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread
