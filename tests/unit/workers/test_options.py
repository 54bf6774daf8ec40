"""How many workers "auto" means: the cores that this process may use, and of these its share."""

from __future__ import annotations

import os

import pytest

from stoker import Auto, Loader
from stoker.workers import workers_of
from stoker.workers.options import usable_cores


@pytest.fixture(autouse=True)
def eight_cores(monkeypatch):
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)


def version_2(folder, told):
    (folder / "cpu.max").write_text(told)


def version_1(folder, quota, period="100000\n"):
    (folder / "cpu").mkdir()
    (folder / "cpu" / "cpu.cfs_quota_us").write_text(quota)
    (folder / "cpu" / "cpu.cfs_period_us").write_text(period)


def test_without_a_limit_it_is_every_core_of_the_affinity(tmp_path):
    assert usable_cores(str(tmp_path)) == 8


@pytest.mark.parametrize(
    ("told", "cores"), [("max 100000\n", 8), ("300000 100000\n", 3), ("50000 100000\n", 1), ("9900000 100000\n", 8)]
)
def test_the_limit_of_a_cgroup_counts(tmp_path, told, cores):
    version_2(tmp_path, told)
    assert usable_cores(str(tmp_path)) == cores


@pytest.mark.parametrize(("quota", "cores"), [("-1\n", 8), ("250000\n", 2), ("1000\n", 1), ("nonsense", 8)])
def test_the_limit_of_a_cgroup_of_version_1_counts(tmp_path, quota, cores):
    version_1(tmp_path, quota)
    assert usable_cores(str(tmp_path)) == cores


@pytest.mark.parametrize(("local", "cores"), [("1", 8), ("2", 4), ("3", 2), ("8", 1), ("100", 1), ("0", 8), ("", 8)])
def test_the_processes_of_a_machine_share_its_cores(tmp_path, monkeypatch, local, cores):
    monkeypatch.setenv("LOCAL_WORLD_SIZE", local)
    assert usable_cores(str(tmp_path)) == cores


def test_they_share_what_the_cgroup_leaves_them(tmp_path, monkeypatch):
    version_2(tmp_path, "500000 100000\n")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert usable_cores(str(tmp_path)) == 2


def test_auto_begins_with_the_cores_and_may_have_more(monkeypatch):
    assert workers_of("auto") == Auto()
    assert (Auto().n, Auto().count) == (8, 32)
    assert (Auto(most=4).n, Auto(most=4).count) == (4, 4)
    assert (Auto(12).n, Auto(12).count) == (12, 32)
    assert (Auto(40).n, Auto(40).count) == (40, 40)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(96)))
    assert (Auto().n, Auto().count) == (96, 192)


@pytest.mark.parametrize("arguments", [(0,), (1, 0), (3, 2), (1.5,), (True,), (1, "8")])
def test_wrong_numbers_of_auto_are_refused(arguments):
    with pytest.raises(ValueError, match=r"Auto\(.*pass"):
        Auto(*arguments)


def test_a_loader_says_what_it_was_given():
    with Loader([1, 2], workers="auto") as loader:
        assert "Auto(least=1, most=None)" in repr(loader)
