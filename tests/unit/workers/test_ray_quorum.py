"""The quorum on a cluster: for how long workers may be missing, and what is said of them. No cluster is needed."""

from __future__ import annotations

import logging

import pytest

from stoker.errors import StartError

pytest.importorskip("ray", reason="Ray is not installed")

from stoker.workers.ray import quorum as module
from stoker.workers.ray.crew_member import CrewMember
from stoker.workers.ray.placing import Placing
from stoker.workers.ray.quorum import Quorum

TIMEOUT = 10.0


@pytest.fixture(autouse=True)
def no_cluster(monkeypatch):
    monkeypatch.setattr(module, "cluster_in_words", lambda: "The cluster has 1 node.")
    monkeypatch.setattr(module, "monotonic", lambda: 0.0)


def crew(count: int, least: int) -> tuple[Quorum, dict[int, CrewMember]]:
    members = {number: CrewMember(number, None, 0.0) for number in range(count)}
    return Quorum(Placing(count, least, count, 1.0, {}, "spread", None, TIMEOUT), members), members


def test_as_many_as_must_be_up_have_so_long_for_it():
    quorum, members = crew(3, least=2)
    members[0].node = "10.0.0.1"
    quorum.check(TIMEOUT - 1)
    with pytest.raises(StartError, match=r"1 of 2 workers are up after 10 s.*Pass a smaller n"):
        quorum.check(TIMEOUT)


def test_the_others_are_logged_once_and_waited_for(caplog):
    quorum, members = crew(3, least=2)
    members[0].node = members[1].node = "10.0.0.1"
    with caplog.at_level(logging.WARNING, "stoker"):
        quorum.check(TIMEOUT)
        quorum.check(TIMEOUT + 1)
    [record] = caplog.records
    assert "Worker 2 has waited for a place on the Ray cluster for 10 s, and 2 others are up" in record.getMessage()


def test_once_it_has_begun_one_worker_is_enough_and_none_is_waited_for_as_long():
    quorum, members = crew(2, least=2)
    members[0].node = members[1].node = "10.0.0.1"
    quorum.check(1.0)
    assert quorum.until() is None, "all are up: nobody looks again"
    members[0] = CrewMember(0, None, 20.0)
    quorum.asked_for_one()
    quorum.check(20.0)
    members[1] = CrewMember(1, None, 25.0)
    quorum.check(25.0)
    assert quorum.until() == 20.0 + TIMEOUT
    with pytest.raises(StartError, match="0 of 2 workers are up"):
        quorum.check(25.0 + TIMEOUT)
