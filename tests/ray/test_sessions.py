"""A process has one connection to Ray, the user's or ours: whose it is, and what becomes of it, over ray:// too."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.ray.conftest import CLIENT_PORT

pytestmark = pytest.mark.timeout(200)

SESSIONS = """
import sys, threading, time, numpy as np, ray, stoker
from stoker.workers.ray import backend
quiet = {"log_to_driver": False, "logging_level": "ERROR"}
backend._LOOK_S = 0.2
address, data = sys.argv[1], np.arange(1000)
workers = stoker.Ray(1, address=address)

def refused(batches):
    try:
        list(batches)
    except stoker.StartError as error:
        return "has ended, as by ray.shutdown()" in str(error)

one, other = (stoker.Loader(data, 10, workers=workers) for _ in range(2))
assert len(list(one)) == len(list(other)) == 100
one.close()
assert ray.is_initialized() and len(list(other)) == 100, "the other one is still there"
batches = iter(other)
next(batches)
ray.shutdown()
assert refused(batches)
assert len(list(other)) == 100, "it connects again"
batches = iter(other)
next(batches)
ray.shutdown()
ray.init(address=address, namespace="mine", **quiet)
assert refused(batches)
other.close()
assert ray.is_initialized(), "this session is the user's"
with stoker.Loader(data, 10, workers=stoker.Ray(1, address="localhost:" + address.rpartition(":")[2])) as again:
    assert len(list(again)) == 100
assert ray.is_initialized()

def stuck(item):
    time.sleep(1000)

def another():
    ray.shutdown()
    ray.init(address=address, **quiet)

for change in ray.shutdown, another:
    with stoker.stream(stuck, [1], workers=workers) as waiting:
        meanwhile = threading.Timer(2, change)
        meanwhile.start()
        assert refused(waiting), f"it does not wait for ever after {change}"
        meanwhile.join()  # Ray can't be connected to while a shutdown is under way
print("all is well")
"""


def run(script: str, *arguments: str) -> str:
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=180, check=True).stdout


def test_only_a_connection_of_ours_is_closed_with_the_last_loader(cluster):
    assert "all is well" in run(SESSIONS, cluster.address)


CLIENT = """
import os, sys, time, numpy as np, ray, stoker
class Hanging:
    def __len__(self):
        return 60
    def __getitem__(self, index):
        if index == 13 and not os.path.exists(sys.argv[2]):
            open(sys.argv[2], "x").close()
            time.sleep(1000)
        return np.full(3, index), np.random.rand()
Hanging.__getitem__.__globals__["sys"] = type("sys", (), {"argv": sys.argv})  # which travels with the class
with stoker.Loader(Hanging(), 5, workers=stoker.Ray(2, address=sys.argv[1]), timeout=2) as loader:
    got = [[column.copy() for column in batch] for batch in loader]
    assert loader.stats().deaths == 1, loader.stats().deaths
    assert any(worker.node for worker in loader.stats().by_worker)
    with stoker.Loader(np.arange(9), 3, workers=stoker.Ray(1, address=sys.argv[1])) as other:
        assert len(list(other)) == 3, "the same address is the same connection"
    with stoker.Loader(np.arange(9), 3, workers=stoker.Ray(1, address="ray://127.0.0.1:1")) as elsewhere:
        try:
            next(iter(elsewhere))
        except stoker.StartError as error:
            assert "connected to the Ray cluster at" in str(error)
        else:
            raise AssertionError("it used the connection that there was")
assert not ray.is_initialized()
with stoker.Loader(Hanging(), 5) as loader:
    for batch, wanted in zip(got, loader, strict=True):
        assert all(map(np.array_equal, batch, wanted))
print("all is well")
"""


def test_over_rays_client_the_stream_is_the_same_and_a_hang_is_ended(cluster, tmp_path):
    assert "all is well" in run(CLIENT, f"ray://127.0.0.1:{CLIENT_PORT}", str(tmp_path / "hung"))
