"""A real Ray cluster of three nodes on this machine, for all tests of this folder: each node is a raylet of its own."""

from __future__ import annotations

import contextlib
import gc
import os
import socket
import threading
import time
import warnings
from pathlib import Path

import pytest

import stoker
from tests.conftest import _mappings, _OldObjects, _WarmNursery

try:
    import ray
    from ray import cluster_utils
except ImportError:
    collect_ignore = [path.name for path in Path(__file__).parent.glob("test_*.py") if path.stem != "test_installed"]

os.environ.setdefault("RAY_AUTH_MODE", "disabled")  # it would write a token into the user's folder
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")

# Nodes that do not answer are given up after seconds, and not half a minute.
QUICK = {"health_check_initial_delay_ms": 2000, "health_check_period_ms": 500, "health_check_timeout_ms": 1500}
NODE = {"num_cpus": 8, "object_store_memory": 120 * 2**20}  # logical CPUs: actors wait for each other on the real ones
with socket.socket() as _free:
    _free.bind(("127.0.0.1", 0))
    CLIENT_PORT = _free.getsockname()[1]  # of the head, for ray://
PATIENCE_S = 20.0  # for Ray to take note of what has ended


@pytest.fixture(scope="session")
def cluster():
    """The head and two more nodes. A test that kills a node adds one of its own."""
    with rays_own_leaks_ignored():
        head = {**NODE, "_system_config": QUICK, "ray_client_server_port": CLIENT_PORT}
        made = cluster_utils.Cluster(initialize_head=True, head_node_args=head)
        for _ in range(2):
            made.add_node(**NODE)
        made.wait_for_nodes()
        ray.init(address=made.address, log_to_driver=False, logging_level="ERROR")
    yield made
    with rays_own_leaks_ignored():
        ray.shutdown()
        made.shutdown()


@contextlib.contextmanager
def rays_own_leaks_ignored():
    """Ray leaves sockets to the garbage collector as it starts and ends nodes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        yield
        gc.collect()


def actors_alive() -> list[str]:
    """Of Stoker's, in the whole cluster."""
    table = ray._private.state.actors().values()
    return [one["ActorID"] for one in table if one["State"] != "DEAD" and one["ActorClassName"] == "WorkerActor"]


def groups_left() -> list[str]:
    """Placement groups, in the whole cluster."""
    return [name for name, group in ray.util.placement_group_table().items() if group["state"] != "REMOVED"]


def until(is_true, what: str):
    """Ray tells late: waits for what it says to become true."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_true():
        assert time.monotonic() < deadline, f"not true within {PATIENCE_S} s: {what}"
        time.sleep(0.05)  # Ray has no event for it


@pytest.fixture(autouse=True)
def nothing_left_behind(request):
    """No actor, thread or mapping of ours remains. Ray keeps descriptors of its own to nodes and actors."""
    if request.path.stem == "test_installed":
        yield
        return
    request.getfixturevalue("cluster")
    _OldObjects.freeze()
    _WarmNursery.keep()
    before = _mappings()
    yield
    gc.collect()
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("stoker")]
    assert _mappings() <= before, "a mapping was left behind"
    until(lambda: not actors_alive(), "no actor is left behind")


def pytest_collection_modifyitems(items):
    """Of the suites of all backends, those tests that take any: others choose theirs, or need one on this machine."""
    items[:] = [item for item in items if item.path.stem != "test_conformance" or _is_for_any_backend(item)]
    for item in items:
        if item.path.parent.name == "ray":  # Ray leaves sockets to the garbage collector
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))


def _is_for_any_backend(item) -> bool:
    return "backend" in getattr(item, "fixturenames", ()) and "rotation" not in item.name


@pytest.fixture(params=[stoker.Ray(3)], ids=["Ray"])
def backend(request):
    return request.param
