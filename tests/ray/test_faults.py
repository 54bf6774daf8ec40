"""Actors, nodes and raylets may die, stop and hang: the stream is the same, and the log says who it was and where."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import Future
from itertools import count

import numpy as np
import pytest
from ray.exceptions import ObjectLostError

import stoker
from stoker import Loader, WorkerDied
from stoker.workers.ray.receiver import Receiver
from tests.datasets import Augmented, Deadly
from tests.faults.test_matrix import HOWS, PHASES, SAMPLE, Fate, expected, leave, make, once
from tests.ray.conftest import NODE, actors_alive, groups_left, until
from tests.streams import assert_same, epochs, kept

pytestmark = pytest.mark.timeout(200)


@pytest.fixture
def two(monkeypatch):
    """Two actors, which know who the consumer is, as the datasets of the matrix need it."""
    monkeypatch.setenv("CONSUMER", str(os.getpid()))
    return stoker.Ray(2, runtime_env={"env_vars": {"CONSUMER": str(os.getpid())}})


def cases():
    """One way to die in each phase, and each way in one; all others are exhaustive."""
    for phase in PHASES:
        for how in HOWS:
            is_one = how == "exit code 7" or phase == "fetching"
            yield pytest.param(how, phase, marks=() if is_one else pytest.mark.exhaustive)


@pytest.mark.parametrize(("how", "phase"), [*cases()])
def test_one_death_changes_nothing_and_is_one_line_that_names_node_and_actor(how, phase, two, tmp_path, caplog):
    """Contract: exactly once, whatever dies."""
    with make(once(phase, HOWS[how], tmp_path), two) as loader:
        assert_same(epochs(loader, 2), expected())
    (line,) = [record.message for record in caplog.records if record.name == "stoker"]
    assert re.match(r"worker \d \(actor [0-9a-f]{8} on node [\d.]+ \([0-9a-f]{8}\)\) died by ", line)
    assert (tmp_path / "struck").exists()


@pytest.mark.parametrize("phase", ["unpickling", pytest.param("building", marks=pytest.mark.exhaustive)])
def test_a_dataset_that_kills_every_actor_ends_in_one_clear_error(phase, two):
    with make(Fate(phase, leave, None), two) as loader:
        with pytest.raises(WorkerDied, match="while it made the dataset"):
            epochs(loader, 1)


def test_a_batch_that_kills_its_actors_is_given_up_in_its_turn_and_no_other():
    with Loader(Deadly(40), 5, workers=stoker.Ray(1)) as loader:
        iterator = iter(loader)
        assert [int(next(iterator)[0, 0]) for _ in range(2)] == [0, 5]
        with pytest.raises(WorkerDied, match=r"position 10 of epoch 0.*3 times") as caught:
            next(iterator)
        assert 13 in caught.value.indices
        assert [int(batch[0, 0]) for batch in iterator] == [15, 20, 25, 30, 35]


@pytest.mark.exhaustive
def test_by_policy_the_very_sample_is_found_and_left_out(two):
    with make(Fate("fetching", leave, None), two, on_error="skip", max_deaths=1) as loader:
        (got,) = epochs(loader, 1)
    leaves = [leaf.index for batch in got for leaf in batch["leaves"]]
    wanted = [leaf.index for batch in expected()[0] for leaf in batch["leaves"]]
    wanted.remove(SAMPLE)
    assert leaves == wanted


class Hanging(Augmented):
    """Hangs at sample 13, the first time only."""

    def __init__(self, marker: str) -> None:
        super().__init__(60)
        self.marker = marker

    def __getitem__(self, index: int):
        if index == 13 and not os.path.exists(self.marker):
            open(self.marker, "x").close()
            time.sleep(1000)
        return super().__getitem__(index)


def test_an_actor_that_hangs_is_replaced_after_the_timeout_and_its_stack_is_logged(tmp_path, caplog):
    with Loader(Augmented(60), 5, shuffle=True) as oracle:
        wanted = epochs(oracle, 1)
    with Loader(Hanging(str(tmp_path / "hung")), 5, shuffle=True, workers=stoker.Ray(2), timeout=2) as loader:
        assert_same(epochs(loader, 1), wanted)
    (line,) = [record.message for record in caplog.records if "a timeout" in record.message]
    assert "time.sleep(1000)" in line


class Big(Augmented):
    """Batches that do not travel inline, but through the object stores of the nodes."""

    def __getitem__(self, index: int):
        return {**super().__getitem__(index), "image": np.full((64, 1024), index, np.float32)}


def big_epochs(count: int):
    with Loader(Big(120), 4, shuffle=True) as oracle:
        return epochs(oracle, count)


def raylet_of(node) -> int:
    (info,) = node.all_processes["raylet"]
    return info.process.pid


def epochs_while(cluster, harm, placement="spread"):
    """Three epochs of two actors, each on a node of its own, one of which is harmed as soon as both are up."""
    nodes = [cluster.add_node(**NODE, resources={"spot": 1}) for _ in range(2)]
    got, is_harmed = [], False
    try:
        workers = stoker.Ray(2, resources={"spot": 1}, placement=placement)
        with Loader(Big(120), 4, shuffle=True, workers=workers) as loader:
            for _ in range(3):
                got.append([])
                for batch in loader:
                    got[-1].append(kept(batch))
                    if not is_harmed and all(worker.node for worker in loader.stats().by_worker):
                        is_harmed = True
                        harm(nodes[0])
            deaths = loader.stats().deaths
    finally:
        for node in nodes:
            if node in cluster.worker_nodes:
                os.kill(raylet_of(node), signal.SIGCONT)
                cluster.remove_node(node, allow_graceful=False)
    assert is_harmed
    return got, deaths


@pytest.mark.parametrize("placement", ["spread", pytest.param("pack", marks=pytest.mark.exhaustive)])
def test_a_whole_node_is_killed(placement, cluster, caplog):
    """Its worker has no place while no node has what it needs: the other goes on without it."""
    got, deaths = epochs_while(cluster, lambda node: cluster.remove_node(node, allow_graceful=False), placement)
    assert_same(got, big_epochs(3))
    assert deaths == 1
    (line,) = [record.message for record in caplog.records if "died by" in record.message]
    assert re.match(r"worker \d \(actor [0-9a-f]{8} on node [\d.]+ \([0-9a-f]{8}\)\) died by the loss of", line)


def test_a_raylet_is_stopped_and_objects_may_be_lost_with_it(cluster, caplog):
    got, _ = epochs_while(cluster, lambda node: os.kill(raylet_of(node), signal.SIGSTOP))
    assert_same(got, big_epochs(3))


class LostObject:
    """Of which Ray has no copy any more."""

    def __init__(self, ref) -> None:
        self._ref = ref

    def future(self) -> Future:
        lost = Future()
        lost.set_exception(ObjectLostError(self._ref.hex(), self._ref.owner_address(), "a call"))
        return lost


def test_results_that_are_lost_or_cannot_be_taken_over_are_made_again(monkeypatch, caplog):
    """The one by Ray, the other as it is copied here: neither may be waited for in vain."""
    expect, received, calls, copies = Receiver.expect, Receiver.received, count(), count()

    def losing(self, member, ref, handle):
        is_lost = "received" in handle.__code__.co_names and next(calls) == 3
        expect(self, member, LostObject(ref) if is_lost else ref, handle)

    def failing(self, member, call, result):
        if next(copies) == 5:
            raise OSError(5, "Input/output error")
        return received(self, member, call, result)

    monkeypatch.setattr(Receiver, "expect", losing)
    monkeypatch.setattr(Receiver, "received", failing)
    with Loader(Big(120), 4, shuffle=True, workers=stoker.Ray(2)) as loader:
        assert_same(epochs(loader, 1), big_epochs(1))
    causes = [record.message.partition("died by ")[2].split()[0] for record in caplog.records]
    assert sorted(causes) == ["OSError", "ObjectLostError"]


def test_actors_killed_from_outside_again_and_again(caplog):
    with Loader(Big(120), 4, shuffle=True, workers=stoker.Ray(3)) as loader:
        got = []
        for step, batch in enumerate(loader):
            got.append(kept(batch))
            if step in (3, 9, 15) and (pids := loader.worker_pids):
                os.kill(pids[step % len(pids)], signal.SIGKILL)
    assert_same([got], big_epochs(1))


CONSUMER = """
import sys, numpy as np, ray, stoker
ray.init(address=sys.argv[1], log_to_driver=False, logging_level="ERROR")
loader = stoker.Loader(np.arange(10_000), 10, workers=stoker.Ray(2, placement="pack"))
next(iter(loader))
print("up", flush=True)
sys.stdin.read()
"""


def test_a_consumer_that_is_killed_takes_its_actors_and_its_placement_group_with_it(cluster):
    done = [sys.executable, "-c", CONSUMER, cluster.address]
    with subprocess.Popen(done, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert "up\n" in process.stdout  # and before that what Ray has to say
        assert len(actors_alive()) == 2
        process.kill()
    until(lambda: not actors_alive() and not groups_left(), "no actor and no placement group is left")
