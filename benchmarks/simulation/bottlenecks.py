"""What limits one consumer, by the size of its batches and the number of its workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.simulation.assumptions import Service
from benchmarks.simulation.scenario import Scenario, simulate
from stoker import Ray
from stoker.plan import Batch, Plan

SIZES = (4 * 2**10, 64 * 2**10, 2**20, 16 * 2**20, 64 * 2**20)  # of a batch, in bytes
WORKERS = (4, 16, 64, 256, 1024)
_QUICK = (4, 64, 1024)
_CORES = 32  # of a node
_MADE_BYTES_PER_S = 200e6  # by a worker: images that are decoded come to about as much
_MADE_S = 1e-3  # and for each batch
_RUNS, _RUNS_EACH, _BATCHES = 400, 24, 200_000  # measured: at least, for each worker, and at most of these
_RUN_S, _RUN_BYTES, _RUN_MOST = 0.03, 2**24, 64  # batches are joined into runs up to about this


@dataclass(frozen=True)
class Limit:
    """What a consumer gets, and what keeps it from getting more: what is busiest."""

    batch_bytes: int
    workers: int
    batches_per_s: float
    limit: str
    busy: float  # the share of the time for which that is busy
    slot_bytes: int
    node_store_bytes: int  # in the fullest object store

    @property
    def bytes_per_s(self) -> float:
        return self.batches_per_s * self.batch_bytes


def measure(*, full: bool) -> Iterator[Limit]:
    """For all sizes; a quick measurement leaves out some numbers of workers."""
    for batch_bytes in SIZES:
        for workers in WORKERS if full else _QUICK:
            yield limit_of(batch_bytes, workers)


def limit_of(batch_bytes: int, workers: int) -> Limit:
    service = _service(batch_bytes)
    joined = _joined(batch_bytes, service)
    skip = 4 * workers * joined
    scenario = Scenario(
        [Plan(10**12, 1, shuffle=True)],
        service,
        batches=skip + max(_RUNS * joined, min(_RUNS_EACH * workers * joined, _BATCHES)),
        workers=Ray(workers),
        nodes=-(-workers // _CORES),
        cores=_CORES,
        sample_bytes=batch_bytes,
        skip=skip,
    )
    outcome = simulate(scenario)
    busy = outcome.utilization()
    limit = max(busy, key=busy.__getitem__)
    found = outcome.slot_bytes(), outcome.stored_bytes()
    return Limit(batch_bytes, workers, outcome.batches_per_s, limit, busy[limit], *found)


def at(limits: Sequence[Limit], batch_bytes: int, workers: int) -> Limit:
    """The one of them that is about these."""
    return next(one for one in limits if (one.batch_bytes, one.workers) == (batch_bytes, workers))


def _service(batch_bytes: int) -> Service:
    """A batch is one sample here, of that size."""
    seconds = _MADE_S + batch_bytes / _MADE_BYTES_PER_S

    def service(batch: Batch) -> float:
        return seconds

    return service


def _joined(batch_bytes: int, service: Service) -> int:
    """About how many batches there are in a run."""
    seconds = service(Batch(0, 0, 1, 0))
    return max(1, min(int(_RUN_S / seconds), _RUN_BYTES // batch_bytes, _RUN_MOST))
