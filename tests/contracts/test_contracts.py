"""The contracts of the design (section 5), each under its own name. Faults have a folder of their own.

- Exactly once, and the same stream on every backend and number of workers: ``conformance/test_streams.py``
- What was prefetched is not lost, what was taken is not repeated, resharding: ``conformance/test_resume.py``
- Errors keep their type and traceback: ``conformance/test_errors.py``, ``conformance/test_awkward_errors.py``
- Bad arguments fail in the constructor: ``conformance/test_arguments.py``
- Nothing left behind: ``conftest.nothing_left_behind`` for every test, and ``lifecycle/``
- Importing stoker starts nothing: ``test_public_api.py``
- The others are here.
"""

from __future__ import annotations

import gc
import resource
import zlib
from collections import Counter

import numpy as np
import psutil
import pytest

import stoker
from stoker import Inline, Loader, Processes, Threads
from stoker.memory.limits import mappings_allowed
from stoker.workers import transport
from tests.datasets import Rows
from tests.items import works


class Noise:
    """Sample i is 4 KB that depend on i alone."""

    def __len__(self):
        return 300

    def __getitem__(self, index):
        return np.random.default_rng(index).integers(0, 255, 4096, np.uint8)


def checksum(batch) -> int:
    return zlib.crc32(batch.tobytes())


def test_exactly_once_each_sample_of_an_epoch_in_the_plans_order(backend):
    with Loader(Rows(103), 10, shuffle=True, workers=backend) as loader:
        order = [int(index) for batch in loader for index in batch[:, 0]]
        plan = loader._session._agenda.plan
        assert order == [index for batch in plan.batches(0) for index in plan.indices(batch)]
    assert Counter(order) == Counter(range(103))


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_every_shard_gets_the_same_number_of_batches_and_their_union_is_the_epoch(count):
    loaders = [Loader(Rows(115), 5, shuffle=True, shard=(k, count), workers=Threads(2)) for k in range(count)]
    shares = [[batch[:, 0].tolist() for batch in loader] for loader in loaders]
    for loader in loaders:
        loader.close()
    assert len({len(share) for share in shares}) == 1
    assert all(max(map(len, last)) - min(map(len, last)) <= 1 for last in [[share[-1] for share in shares]])
    assert Counter(index for share in shares for batch in share for index in batch) == Counter(range(115))


def test_where_samples_are_fewer_than_shards_one_is_repeated():
    shares = []
    for k in range(4):
        with Loader(Rows(2), 5, shard=(k, 4)) as loader:
            shares.append([batch[:, 0].tolist() for batch in loader])
    assert shares == [[[0]], [[0]], [[1]], [[1]]]


def test_a_held_batch_never_changes(backend):
    """Checksummed while the workers go on: every batch of two epochs is held to the end."""
    with Loader(Noise(), 10, workers=backend) as loader:
        held = [(batch, checksum(batch)) for _ in range(2) for batch in loader]
        assert len(held) == 60
        assert all(checksum(batch) == sum_ for batch, sum_ in held)
    assert all(checksum(batch) == sum_ for batch, sum_ in held), "changed after close"


def test_a_batch_held_in_part_never_changes(backend):
    """One row, through a view of a view, holds the whole slot."""
    with Loader(Noise(), 10, workers=backend) as loader:
        rows = [batch[3:][2, ::7] for batch in loader]
    assert all(np.array_equal(row, Noise()[10 * k + 5][::7]) for k, row in enumerate(rows))


def test_a_batch_is_the_consumers_own_to_write_into(backend):
    with Loader(Rows(60), 5, workers=backend) as loader:
        for _ in range(2):
            for step, batch in enumerate(loader):
                assert batch[:, 0].tolist() == list(range(5 * step, 5 * step + 5))
                batch[:] = -1


def test_batches_held_beyond_the_limit_are_copies_and_stay_right(monkeypatch):
    """Contract: bounded memory. Slots are held up to a limit; what is held beyond it is copied out."""
    monkeypatch.setattr(transport, "HELD_BYTES", 200_000)
    with Loader(Noise(), 10, workers=Processes(2)) as loader:
        held = list(loader)
        slots = loader.stats().slots
    assert slots <= 200_000 // 40_960 + 2 * 2 + 1
    assert len(held) == 30
    assert all(np.array_equal(batch[0], Noise()[10 * k]) for k, batch in enumerate(held))


def test_memory_is_bounded_by_slots_times_batch_size():
    """workers x prefetch slots, and those that the consumer holds: here the current batch and the one before it."""
    with Loader(Noise(), 10, workers=Processes(2), prefetch=3) as loader:
        for _ in range(3):
            for batch in loader:
                checksum(batch)
        assert loader.stats().slots <= 2 * 3 + 2


def test_what_is_in_use_can_be_read_and_is_none_before_the_start_and_after_the_end():
    loader = Loader(Noise(), 10, workers=Processes(2), prefetch=3)
    assert (loader.stats().slots, loader.stats().units_under_way) == (0, 0)
    with loader:
        iterator = iter(loader)
        held = [next(iterator), next(iterator)]
        found = loader.stats()
        assert found.slots_held == len(held)
        assert found.slots_held < found.slots <= 2 * 3 + len(held)
        assert 0 < found.units_under_way <= 2 * 3
        assert found.workers_busy <= 2
        del held
    assert (loader.stats().slots, loader.stats().batches) == (0, 2)


def test_descriptors_are_a_fixed_handful_however_many_batches_are_held():
    process = psutil.Process()
    with Loader(Noise(), 1, workers=Processes(2)) as loader:
        iterator = iter(loader)
        held = [next(iterator)]
        few = process.num_fds()
        held.extend(iterator)
        assert len(held) == 300
        assert process.num_fds() == few


def test_a_warm_consumer_has_no_page_faults_and_no_new_mappings():
    with Loader(Noise(), 50, workers=Processes(2)) as loader:
        for _ in range(20):
            for batch in loader:
                batch.sum()
        gc.collect()
        with open("/proc/self/maps") as maps:
            before = sum("memfd:stoker" in line for line in maps)
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        batches = 0
        for _ in range(20):
            for batch in loader:
                batch.sum()
                batches += 1
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults
        with open("/proc/self/maps") as maps:
            assert sum("memfd:stoker" in line for line in maps) == before
    assert faults < batches / 4  # a handful from Python's own allocator, none from the batches


def test_an_in_memory_dataset_exists_once_however_many_workers():
    """Four workers over 64 MB: their proportional share of all memory grows by one dataset, not by four."""

    class Big:
        def __init__(self):
            self.data = np.ones((64, 2**20), np.uint8)

        def __len__(self):
            return 64

        def __getitem__(self, index):
            return int(self.data[index].sum())

    def shared_by_workers(loader):
        for _ in loader:
            pass
        return sum(child.memory_full_info().pss for child in psutil.Process().children(recursive=True))

    with Loader(Rows(64), 4, workers=Processes(4)) as small:
        baseline = shared_by_workers(small)
    with Loader(Big(), 4, workers=Processes(4)) as loader:
        grown = shared_by_workers(loader) - baseline
    assert grown < 1.5 * 64 * 2**20


def test_a_billion_samples_shuffle_in_no_time_and_no_memory():
    class Billion:
        def __len__(self):
            return 10**9

        def __getitem__(self, index):
            return index

    process = psutil.Process()
    before = process.memory_info().rss
    with Loader(Billion(), 64, shuffle=True, workers=Inline()) as loader:
        first = next(iter(loader))
        assert len(set(first.tolist())) == 64
        state = loader.state_dict()
        assert process.memory_info().rss - before < 100 * 2**20
    assert state["position"] == 64


def mappings() -> int:
    with open("/proc/self/maps") as maps:
        return sum("memfd:stoker" in line for line in maps)


@pytest.mark.parametrize("workers", [Inline(), Threads(2), Processes(2)], ids=repr)
def test_held_results_are_copied_out_long_before_mappings_run_out(workers, monkeypatch):
    """A process may have 65,530, and malloc fails with the next one. All loaders of a process share our part."""
    monkeypatch.setattr("stoker.memory.mapping.mappings_allowed", lambda: 40 + before)
    before = mappings()
    with (
        stoker.stream(works.rows, range(200), workers=workers) as one,
        stoker.stream(works.rows, range(200), workers=workers) as other,
    ):
        held = [result for both in zip(one, other, strict=True) for result in both]
        assert 30 < mappings() - before < 80  # some are under way, and some belong to the backend
    assert [result.tolist() for result in held] == [works.rows(k // 2).tolist() for k in range(400)]


def test_results_that_were_let_go_make_room_for_others():
    """As many as were held before can be held again without a copy: their memory is still mapped."""
    with stoker.stream(works.rows, range(1, 400), workers=Threads(2)) as results:
        held = [next(results) for _ in range(100)]
        before = mappings()
        del held
        held = [next(results) for _ in range(90)]
        assert mappings() - before < 20  # some of the first are let go of late
        assert not any(result.flags.owndata for result in held)


def test_the_systems_own_limit_of_mappings_is_what_counts():
    with open("/proc/sys/vm/max_map_count") as file:
        assert mappings_allowed() == int(file.read()) // 4
