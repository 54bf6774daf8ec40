"""The right culprit is named, on loaders that are slow in known ways."""

from __future__ import annotations

import time

import numpy as np
import pytest

import stoker
from stoker import Cache, Culprit, Loader, Processes, Stats, Threads
from stoker.workers.options import usable_cores
from tests.observe.slowness import Computing, Multiplying, Sleeping, compute, slow_collate, slow_move

MANY_THREADS = {name: "4" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")}

# Dataset, step of the consumer in seconds, other arguments.
LOADERS = {
    Culprit.DATASET: (lambda: Computing(100, 0.01), 0.0, {"workers": 2}),
    Culprit.LATENCY: (lambda: Sleeping(160, 0.01), 0.0, {"workers": 2}),
    Culprit.COLLATE: (lambda: Sleeping(80), 0.0, {"workers": 2, "collate": slow_collate}),
    Culprit.CONSUMER: (lambda: Sleeping(40), 0.1, {"workers": 2}),
    Culprit.TOO_MANY_WORKERS: (lambda: Sleeping(40), 0.1, {"workers": Threads(6)}),
    Culprit.SLOW_BATCHES: (lambda: Sleeping(200, every=50, longer=0.5), 0.01, {"workers": 3}),
    Culprit.DEVICE_COPY: (lambda: Sleeping(80), 0.005, {"workers": 2, "to_device": slow_move}),
    Culprit.CONVERSION: (lambda: Sleeping(80), 0.005, {"workers": 2, "to": slow_move}),
    Culprit.NO_WORKERS: (lambda: Sleeping(80, 0.01), 0.01, {}),
}


def stats_of(dataset, step=0.0, *, train=time.sleep, **arguments) -> Stats:
    with Loader(dataset, 4, **arguments) as loader:
        loader.warm_up()
        for _ in loader:
            train(step)
    return loader.stats()


@pytest.mark.parametrize("culprit", LOADERS)
def test_the_right_culprit_is_named(culprit):
    make, step, arguments = LOADERS[culprit]
    found = stoker.diagnose(stats_of(make(), step, **arguments))
    assert found.culprit == culprit, found.sentence


def test_items_that_come_slowly_are_named():
    def items():
        for number in range(30):
            time.sleep(0.02)
            yield number

    with stoker.stream(abs, items(), workers=Threads(2)) as results:
        assert list(results) == list(range(30))
    found = stoker.diagnose(results.stats())
    assert found.culprit == Culprit.HAND_OVER, found.sentence
    assert "items that come more quickly" in found.remedy


@pytest.mark.skipif(usable_cores() < 2, reason="another worker would be one more than there are cores")
def test_too_few_workers_are_named_with_the_number_that_is_enough():
    found = stoker.diagnose(stats_of(Sleeping(120, 0.01), 0.035, workers=1))
    assert found.culprit == Culprit.TOO_FEW_WORKERS, found.sentence
    assert "a second worker (workers=2) would cut the wait" in found.sentence


def test_a_cold_cache_is_named_until_it_is_warm(tmp_path):
    cold, warm = (stats_of(Sleeping(80, 0.01), workers=2, cache=Cache(tmp_path / "cache")) for _ in range(2))
    assert stoker.diagnose(cold).culprit == Culprit.COLD_CACHE, cold.diagnosis
    assert stoker.diagnose(warm).culprit != Culprit.COLD_CACHE, warm.diagnosis


def test_the_slowest_sample_is_named_by_its_batch():
    stats = stats_of(Sleeping(200, every=200, longer=0.5), 0.001, workers=2)
    assert stats.slowest[0].position == 100


@pytest.mark.parametrize(("workers", "on_error"), [(0, "raise"), (2, "raise"), (Threads(2), "skip")], ids=str)
def test_a_slow_sample_is_named_by_its_index_where_most_batches_have_one(workers, on_error):
    with Loader(Sleeping(1600, every=100, longer=0.2), 64, workers=workers, on_error=on_error) as loader:
        list(loader)
    slow = loader.stats().slow_samples
    assert slow.count >= 12  # of 16: the first batch of each worker is not looked at so closely
    assert {one.index % 100 for one in slow.slowest} == {50}
    if workers:
        found = stoker.diagnose(loader.stats())
        assert found.culprit == Culprit.SLOW_SAMPLES, found.sentence


def test_a_slow_rank_is_named_with_its_own_culprit():
    quick, slow = stats_of(Sleeping(40), 0.1, workers=2), stats_of(Sleeping(80, 0.02), 0.01, workers=2)
    found = stoker.compare_ranks([quick, quick, slow, quick])
    assert (found.culprit, found.rank) == (Culprit.SLOW_RANK, 2)
    assert found.sentence.startswith("Rank 2 of 4 lags")
    assert "dataset[i]" in found.sentence
    alike = stoker.compare_ranks([quick, quick])
    assert (alike.culprit, alike.rank) == (Culprit.CONSUMER, None)
    with pytest.raises(ValueError, match="on each rank"):
        stoker.compare_ranks([])


def test_what_workers_did_is_known_after_they_have_ended():
    with Loader(Sleeping(40, 0.01), 4, workers=2) as loader:
        list(loader)
    processors = loader.stats().processors
    assert processors.cores == usable_cores()
    assert processors.workers_delay is not None
    assert processors.busy_threads >= 1
    assert loader.stats().slots_made >= 2


def test_slots_that_were_never_used_are_counted():
    with Loader(Sleeping(400, 0.005), 4, workers=Threads(2), prefetch=8) as loader:
        for _ in loader:
            pass
    stats = loader.stats()
    assert 2 <= stats.slots_filled < 16
    assert f"{16 - stats.slots_filled} of 16 slots were never used" in stats.diagnosis


@pytest.mark.exhaustive
def test_threads_of_libraries_in_workers_are_named():
    cores = usable_cores()
    workers = Processes(cores, start="spawn", environments=[MANY_THREADS] * cores)
    found = stoker.diagnose(stats_of(Multiplying(), workers=workers))
    assert found.culprit == Culprit.THREADS_IN_WORKERS, found.sentence


@pytest.mark.exhaustive
def test_workers_that_starve_the_training_thread_are_named():
    # As many as a consumer takes that has a fair share of the cores: then workers are busy all the time.
    cores = usable_cores()
    found = stoker.diagnose(stats_of(Computing(80, 0.0125 * cores), 0.03, train=compute, workers=2 * cores))
    assert found.culprit == Culprit.STARVED_CONSUMER, found.sentence


@pytest.mark.exhaustive
def test_more_workers_than_cores_are_named():
    found = stoker.diagnose(stats_of(Computing(200, 0.01), workers=4 * usable_cores()))
    assert found.culprit == Culprit.TOO_MANY_WORKERS, found.sentence


def test_of_chunk_files_a_slow_collate_is_not_told_from_reading_and_both_are_named(tmp_path):
    np.save(tmp_path / "chunk.npy", np.arange(40.0))
    with Loader(stoker.Chunks([tmp_path / "chunk.npy"]), 4, workers=Threads(1), collate=slow_collate) as loader:
        list(loader)
    assert "of worker time was reading files and collate=" in loader.stats().diagnosis
