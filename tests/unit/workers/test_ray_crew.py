"""The crew on a cluster: as many actors as demand calls for, and only idle ones are let go. No cluster is needed."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from stoker.errors import StartError
from stoker.workers.backend import Departure

pytest.importorskip("ray", reason="Ray is not installed")

from stoker.workers.ray.crew import Crew
from stoker.workers.ray.placing import Placing


class Bench:
    """Three workers that the engine knows, of which demand calls for two at first."""

    def __init__(self) -> None:
        self.killed: list[Any] = []
        self.is_connected, self.job = True, "01"
        self.crew: Any = None

    def begin(self) -> None:
        placing = Placing(2, 1, 3, 1.0, {}, "spread", None, 10.0)
        self.crew = Crew(placing, MagicMock(), None, "setup", MagicMock())
        for worker in range(3):
            self.crew.start(worker)
        for member in self.crew.members.values():
            member.node, member.is_open = "10.0.0.1", True


@pytest.fixture
def bench(monkeypatch):
    bench = Bench()
    context = SimpleNamespace(gcs_address="10.0.0.1:6379", get_job_id=lambda: bench.job)
    ray = SimpleNamespace(
        is_initialized=lambda: bench.is_connected, kill=bench.killed.append, get_runtime_context=lambda: context
    )
    monkeypatch.setitem(sys.modules, "ray", ray)
    bench.begin()
    return bench


def test_only_as_many_are_asked_for_as_demand_calls_for_and_others_when_it_grows(bench):
    assert list(bench.crew.members) == [0, 1]
    bench.crew._demand.wanted = 3
    bench.crew.review()
    assert list(bench.crew.members) == [0, 1, 2]


def test_one_that_idles_is_let_go_and_can_be_asked_for_again(bench):
    assert not bench.crew.has_too_many
    bench.crew._demand.wanted = 1
    assert bench.crew.has_too_many
    actor = bench.crew.members[1].actor
    assert bench.crew.let_one_go(busy={0}) == Departure(1)
    assert (bench.killed, list(bench.crew.members)) == ([actor], [0])
    bench.crew._demand.wanted = 3
    bench.crew.review()
    assert sorted(bench.crew.members) == [0, 1, 2]


def test_nobody_is_let_go_who_has_something_to_do(bench):
    bench.crew._demand.wanted = 1
    bench.crew.members[0].waiting.append("a request")
    assert bench.crew.let_one_go(busy={1}) is None
    assert bench.killed == []


def test_a_cluster_that_was_left_is_an_error_and_nobody_is_killed_there(bench):
    bench.is_connected = False
    with pytest.raises(StartError, match="close the loader before that"):
        bench.crew.check_connected()
    bench.crew.close()
    assert bench.killed == []


def test_of_a_cluster_that_was_left_and_joined_again_nothing_is_asked(bench):
    bench.job = "02"
    with pytest.raises(StartError, match="close the loader before that"):
        bench.crew.start(0)
    assert list(bench.crew.members) == [0, 1]
