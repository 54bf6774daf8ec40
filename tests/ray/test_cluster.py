"""What is asked of a cluster: places, shortage, versions, workers that come and go, processes beside actors."""

from __future__ import annotations

import contextlib
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import ray
from ray.util.placement_group import placement_group, remove_placement_group

import stoker
from stoker import Loader, StartError
from stoker.workers.ray import connection
from stoker.workers.ray.demand import Demand
from tests.datasets import Augmented, Rows
from tests.ray.conftest import NODE, actors_alive, groups_left, until
from tests.streams import assert_same, epochs

pytestmark = pytest.mark.timeout(200)


def oracle(count: int = 1):
    with Loader(Augmented(100), 5, shuffle=True) as loader:
        return epochs(loader, count)


def nodes_of(loader) -> list[str]:
    return [worker.node for worker in loader.stats().by_worker]


def test_workers_are_spread_over_the_nodes_and_stats_name_these():
    with Loader(Rows(3000), 5, workers=stoker.Ray(3)) as loader:
        while not all(nodes_of(loader)):
            list(loader)
        assert len(set(nodes_of(loader))) == 3
    assert len(set(nodes_of(loader))) == 3, "they are known when it is closed, too"


def test_packed_workers_are_on_as_few_nodes_as_hold_them():
    """Ray by itself would fill a node to the half, and go on to the next one."""
    cpus = NODE["num_cpus"] / 2
    until(lambda: ray.available_resources()["CPU"] == ray.cluster_resources()["CPU"], "a whole node is free")
    with Loader(Rows(3000), 5, workers=stoker.Ray(2, num_cpus=cpus, placement="pack")) as loader:
        while not all(nodes_of(loader)):
            list(loader)
        assert len(set(nodes_of(loader))) == 1
        assert groups_left()
    until(lambda: not groups_left(), "no placement group is left")


def test_options_that_ray_refuses_leave_no_placement_group():
    before = groups_left()
    workers = stoker.Ray(1, placement="pack", runtime_env={"working_dir": 5})
    with Loader(Rows(), 5, workers=workers) as loader, pytest.raises(TypeError, match="working_dir"):
        next(iter(loader))
    assert groups_left() == before


def test_a_placement_group_that_nobody_can_be_in_is_named():
    group = placement_group([{"CPU": 1000}])
    with Loader(Rows(), 5, workers=stoker.Ray(1, placement=group, start_timeout=1)) as loader:
        with pytest.raises(StartError, match=r"a placement group that has {'CPU': 1000.0}, and is PENDING"):
            next(iter(loader))
    remove_placement_group(group)


@pytest.mark.exhaustive
def test_a_placement_group_of_the_users_own_says_where(cluster):
    node = cluster.add_node(**NODE, resources={"here": 1})
    group = placement_group([{"CPU": 2, "here": 1}])
    try:
        ray.get(group.ready(), timeout=30)
        with Loader(Augmented(100), 5, shuffle=True, workers=stoker.Ray(2, placement=group)) as loader:
            assert_same(epochs(loader, 1), oracle())
            until(lambda: list(loader) and all(nodes_of(loader)), "all are up")
            assert {name.split("(")[1][:8] for name in nodes_of(loader)} == {node.node_id[:8]}
    finally:
        remove_placement_group(group)
        cluster.remove_node(node, allow_graceful=False)
    until(lambda: "here" not in ray.cluster_resources(), "the node is gone, for the next test")


def test_too_small_a_cluster_is_an_error_with_what_was_asked_and_what_there_is():
    workers = stoker.Ray(2, num_cpus=20, resources={"moon": 1}, start_timeout=1)
    with Loader(Rows(), 5, workers=workers) as loader:
        wanted = r"0 of 2 workers are up after 1 s. Each one needs 20 CPU, 1 moon. The cluster has 3 nodes with 24 CPU"
        with pytest.raises(StartError, match=wanted):
            next(iter(loader))


def test_another_stoker_on_the_nodes_is_said_at_once(tmp_path):
    shutil.copytree(Path(stoker.__file__).parent, tmp_path / "stoker")
    (tmp_path / "stoker" / "version.py").write_text('__version__ = "9.9.9"\n')
    workers = stoker.Ray(1, runtime_env={"env_vars": {"PYTHONPATH": str(tmp_path)}})
    with Loader(Rows(), 5, workers=workers) as loader:
        with pytest.raises(StartError, match=r"Stoker 9\.9\.9, and this process has"):
            next(iter(loader))


@pytest.mark.exhaustive
def test_no_stoker_on_the_nodes_is_said_with_the_line_to_write(tmp_path):
    (tmp_path / "stoker").mkdir()
    (tmp_path / "stoker" / "__init__.py").write_text("raise ModuleNotFoundError(\"No module named 'stoker'\")\n")
    workers = stoker.Ray(1, runtime_env={"env_vars": {"PYTHONPATH": str(tmp_path)}})
    with Loader(Rows(), 5, workers=workers) as loader:
        with pytest.raises(StartError, match=r"cannot import Stoker.*Install stoker=="):
            next(iter(loader))


def test_processes_here_work_beside_actors_there_on_one_stream():
    with Loader(Augmented(100), 5, shuffle=True, workers=stoker.Ray(2, local=2)) as loader:
        assert_same(epochs(loader, 3), oracle(3))
        while not all(loader.stats().by_worker[number].batches for number in range(4)):
            list(loader)
        assert [bool(node) for node in nodes_of(loader)] == [False, False, True, True]


class Waiting(Rows):
    def __getitem__(self, index: int):
        import time

        time.sleep(0.01)
        return super().__getitem__(index)


def test_workers_are_added_while_all_are_busy_and_the_stream_stays_the_same():
    workers = stoker.Ray(1, autoscale=(1, 3))
    with Loader(Waiting(2000), 5, workers=workers) as loader, Loader(Rows(2000), 5) as same:
        for batch, wanted in zip(loader, same, strict=True):
            assert np.array_equal(batch, wanted)
        assert sum(worker.batches > 0 for worker in loader.stats().by_worker) > 1


def test_demand_follows_how_busy_workers_are():
    """Pure: no cluster is needed for it."""
    demand, now = Demand(2, 1, 8, 0.0), 0.0

    def live(seconds: float, busy, up) -> int:
        nonlocal now
        for _ in range(int(seconds / 0.5)):
            demand.note(now, busy(demand.wanted), up(demand.wanted), 0)
            demand.worked(0.5 * busy(demand.wanted))
            now += 0.5
        return demand.wanted

    assert live(20, busy=lambda n: n, up=lambda n: n) == 8, "all are always busy"
    assert live(20, busy=lambda n: min(n, 2), up=lambda n: n) == 3, "two would do, with room to spare"
    assert live(60, busy=lambda n: min(n, 2), up=lambda n: n) == 3, "and it stays so"
    assert live(20, busy=lambda n: 0, up=lambda n: n) == 1
    assert Demand(4, 4, 4, 0.0).look_again is None


def test_a_loader_within_a_task_of_rays():
    @ray.remote(num_cpus=1)
    def total() -> int:
        with stoker.Loader(np.arange(100), 10, workers=stoker.Ray(2)) as loader:
            return int(sum(batch.sum() for batch in loader))

    assert ray.get(total.remote(), timeout=120) == 4950


SHARD = """
import sys, numpy as np, ray, stoker
ray.init(address=sys.argv[1], log_to_driver=False, logging_level="ERROR")
with stoker.Loader(np.arange(600), 10, shuffle=True, shard="auto", workers=stoker.Ray(2)) as loader:
    print("got", [int(one) for epoch in range(2) for batch in loader for one in batch], flush=True)
"""


def test_three_consumers_at_once_share_a_cluster_and_get_each_sample_once(cluster, monkeypatch):
    running = []
    for rank in range(3):
        monkeypatch.setenv("RANK", str(rank))
        monkeypatch.setenv("WORLD_SIZE", "3")
        command = [sys.executable, "-c", SHARD, cluster.address]
        running.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
    got = []
    for process in running:
        with process:
            (line,) = [line for line in process.stdout if line.startswith("got")]
            got += eval(line.removeprefix("got "))
    assert sorted(got) == sorted([*range(600)] * 2)


LOCAL = """
import sys, numpy as np, stoker
from tests.children import children
with stoker.Loader(np.arange(100), 10, workers=stoker.Ray(2, address="local", resources={"disk": 1})) as loader:
    total = int(sum(batch.sum() for batch in loader))
    pids = loader.worker_pids
    with stoker.Loader(np.arange(9), 3, workers=stoker.Ray(4, address="local")) as other:
        assert len(list(other)) == 3
    assert len(list(loader)) == 10
import os, ray
assert not ray.is_initialized()
print("got", total, len(pids), [child.pid for child in children() if "ray" in child.name() or "gcs" in child.name()])
"""


def test_a_cluster_that_is_started_here_ends_with_the_loader():
    done = subprocess.run([sys.executable, "-c", LOCAL], stdout=subprocess.PIPE, text=True, timeout=150, check=True)
    assert re.search(r"got 4950 [12] \[\]", done.stdout), done.stdout


NONE = """
import sys, numpy as np, stoker
if sys.argv[1] == "missing":
    sys.modules["ray"] = None
try:
    next(iter(stoker.Loader(np.arange(100), 10, workers=stoker.Ray(2, address=sys.argv[2]))))
except Exception as error:
    print("got", type(error).__name__, error)
"""


@pytest.mark.parametrize(
    ("how", "address", "said"),
    [
        ("missing", "auto", "ModuleNotFoundError workers=stoker.Ray(...): Ray is not installed. Run pip install"),
        ("there", "127.0.0.1:1", "StartError stoker.Ray(address='127.0.0.1:1'): no Ray cluster could be reached"),
    ],
)
def test_no_ray_and_no_cluster_are_said_clearly(how, address, said):
    command = [sys.executable, "-c", NONE, how, address]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=100, check=True)
    assert f"got {said}" in done.stdout


@pytest.mark.parametrize(("answer", "said"), [(b"", "has not answered"), (b"HTTP/1.1 400 Bad\r\n", "it is not Ray")])
def test_an_address_where_somebody_else_listens_is_said_in_time(answer, said, monkeypatch):
    """Ray would try for minutes."""
    monkeypatch.setattr(connection, "_REACHED_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with server.accept()[0] as there, contextlib.suppress(ConnectionError):
                there.sendall(answer)
                while there.recv(100):
                    pass

        other = threading.Thread(target=serve)
        other.start()
        with pytest.raises(OSError, match=said):
            connection._check_reachable(f"127.0.0.1:{server.getsockname()[1]}", 0.0)
        other.join()


def test_a_process_that_is_connected_elsewhere_is_told_so():
    with Loader(Rows(), 5, workers=stoker.Ray(1, address="10.0.0.1:6379")) as loader:
        with pytest.raises(StartError, match=r"connected to the Ray cluster at .* already"):
            next(iter(loader))


@pytest.mark.exhaustive
def test_workers_are_let_go_while_they_idle_and_come_back_when_needed():
    """The consumer says how long it takes for a batch: long enough for one worker, and then no time at all."""
    workers = stoker.Ray(3, autoscale=(1, 3))
    with Loader(Waiting(6000), 5, workers=workers) as loader, Loader(Rows(6000), 5) as same:
        batches = zip(loader, same, strict=True)

        def follow(pause: float, is_there) -> None:
            for batch, wanted in batches:
                assert np.array_equal(batch, wanted)
                if is_there(len(actors_alive())):
                    return
                time.sleep(pause)
            pytest.fail("the epoch is over")

        follow(0.0, lambda alive: alive == 3)
        follow(0.25, lambda alive: alive < 3)
        follow(0.0, lambda alive: alive == 3)


def slowly(items):
    for item in items:
        time.sleep(0.3)
        yield item


@pytest.mark.exhaustive
def test_who_waits_for_a_place_is_let_go_before_who_has_one():
    """There is one place, at the head. Its worker idles now and then, and would be let go for the one that waits."""
    place = {"num_cpus": 0.6 * NODE["num_cpus"], "resources": {"node:__internal_head__": 0.01}}
    workers = stoker.Ray(2, autoscale=(1, 2), **place)
    with stoker.stream(int, slowly(range(60)), workers=workers) as results:
        assert [*results] == [*range(60)]
        assert sum(worker.batches > 0 for worker in results.stats().by_worker) == 1
