"""``shard="auto"``: found out when the first loop begins, and never silently everything for everybody."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings
from importlib.util import find_spec

import numpy as np
import pytest

from stoker import Chunks, Inline, Loader, Processes, Rotation, StateError, Threads, shards
from tests.datasets import Rows

VARIABLES = [name for names in shards._LAUNCHERS for name in names]


@pytest.fixture
def group(monkeypatch):
    """Sets which process of a group this one is, as if torch.distributed or JAX ran; None: none runs."""

    def set_group(found):
        monkeypatch.setattr(shards, "_of_group", lambda: found)

    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    set_group(None)
    return set_group


def first_column(loader):
    return [batch[:, 0].tolist() for batch in loader]


def wanted(shard, epochs=1, **options):
    with Loader(Rows(22), 4, shuffle=True, shard=shard, **options) as loader:
        return [first_column(loader) for _ in range(epochs)]


@pytest.mark.parametrize(
    "workers", [Inline(), Threads(2), Processes(2), Processes(1, start="fork"), Processes(1, start="spawn")], ids=repr
)
def test_a_group_that_comes_up_after_the_loader_was_made_is_found(group, workers):
    with Loader(Rows(22), 4, shuffle=True, shard="auto", workers=workers) as loader:
        group((1, 2))
        assert [first_column(loader), first_column(loader)] == wanted((1, 2), epochs=2)


def test_so_it_is_after_the_length_the_state_and_a_state_that_was_loaded(group):
    with Loader(Rows(22), 4, shuffle=True, shard=(1, 3)) as other:
        iterator = iter(other)
        next(iterator)
        state, rest = other.state_dict(), first_column(iterator)
    with Loader(Rows(22), 4, shuffle=True, shard="auto") as loader:
        assert len(loader) == 6
        assert loader.state_dict()["shards"] == 1
        loader.load_state_dict(state)
        group((1, 3))
        assert len(loader) == 2
        assert loader.state_dict() == state
        assert first_column(loader) == rest


def test_a_workers_own_dataset_too(group):
    with Loader(Rows, 7, shard="auto", workers=1) as loader:
        group((1, 3))
        assert len(loader) == 5
        assert first_column(loader)[0][0] == 7


def test_an_unstarted_loader_travels_undecided(group):
    with Loader(Rows(22), 4, shuffle=True, shard="auto") as loader:
        loader.set_epoch(3)
        assert len(loader) == 6
        pickled = pickle.dumps(loader)
    for rank in range(2):
        group((rank, 2))
        with pickle.loads(pickled) as travelled:
            assert travelled.epoch == 3
            assert first_column(travelled) == wanted((rank, 2), epochs=4)[3]


def test_warming_up_decides(group):
    with Loader(Rows(22), 4, shuffle=True, shard="auto", workers=Threads(1)) as loader:
        group((0, 2))
        loader.warm_up()
        assert [first_column(loader)] == wanted((0, 2))


@pytest.mark.parametrize("start", [len, lambda loader: next(iter(loader)), lambda loader: loader.warm_up()])
def test_once_workers_run_another_group_is_an_error_and_not_the_same_data_for_all(group, start):
    with Loader(Rows, 4, shard="auto", workers=1) as loader:
        start(loader)
        group((1, 2))
        for begin in (iter, Loader.warm_up):
            with pytest.raises(RuntimeError, match=r"was \(0, 1\) when the workers .* process 1 of 2: first start"):
                begin(loader)
        assert loader.state_dict()["shards"] == 1, "a checkpoint can still be saved"
        group((0, 1))
        assert len(first_column(loader)) == 25


def test_a_group_that_has_ended_leaves_the_loader_its_shard(group):
    group((1, 2))
    with Loader(Rows(22), 4, shuffle=True, shard="auto") as loader:
        found = [first_column(loader)]
        group(None)
        assert [*found, first_column(loader)] == wanted((1, 2), epochs=2)


def test_where_only_the_old_shard_can_go_on_that_is_said(group):
    options = {"rotation": Rotation(2), "shard": "auto"}
    with Loader(Rows(22), 4, **options) as loader:
        next(iter(loader))
        state = loader.state_dict()
    with Loader(Rows(22), 4, **options) as loader:
        loader.load_state_dict(state)
        group((0, 2))
        with pytest.raises(StateError, match=r"1 shards in the middle of an epoch in which samples rotate"):
            iter(loader)
        group(None)
        assert len(first_column(loader)) == 10, "it is where it was"


def test_a_closed_loader_is_left_as_it_is(group):
    loader = Loader(Rows(22), 4, shard="auto")
    loader.close()
    group((0, 2))
    assert len(loader) == 6


# Files


@pytest.fixture
def folder(tmp_path):
    for number in range(5):
        np.save(tmp_path / f"{number}.npy", np.arange(number * 10, number * 10 + 10))
    return tmp_path


@pytest.mark.parametrize("shuffle", [False, True])
def test_chunks_find_it_late_too(group, folder, shuffle):
    def make(shard):
        return Loader(Chunks(folder), 8, shuffle=shuffle, shard=shard)

    for rank in range(2):
        group(None)
        with make("auto") as loader, make((rank, 2)) as sure:
            assert len(loader) == 7
            group((rank, 2))
            assert len(loader) == len(sure) == 4
            assert [batch.tolist() for batch in loader] == [batch.tolist() for batch in sure]


def test_a_state_of_chunks_within_an_epoch_is_its_own_shards(group, folder):
    with Loader(Chunks(folder), 8, shard="auto") as loader:
        next(iter(loader))
        state = loader.state_dict()
    with Loader(Chunks(folder), 8, shard="auto") as loader:
        loader.load_state_dict(state)
        group((1, 2))
        with pytest.raises(StateError, match=r"by shard \(0, 1\) and this is \(1, 2\)"):
            iter(loader)
        group(None)
        assert [len(batch) for batch in loader] == [8] * 5 + [2]


def test_chunks_whose_batches_do_not_cross_files_have_no_shards_however_late(group, folder):
    with Loader(Chunks(folder, across_chunks=False), 8, shard="auto") as loader:
        group((0, 2))
        with pytest.raises(ValueError, match=r"shard=\(0, 2\) of Chunks.*across_chunks=True"):
            iter(loader)


# Where it is found


@pytest.mark.parametrize(
    ("rank", "world_size", "found"), [("1", "2", (1, 2)), ("0", "1", (0, 1)), ("0", None, (0, 1)), (None, "2", (0, 1))]
)
def test_the_environment_is_believed_if_it_says_both(group, monkeypatch, rank, world_size, found):
    for name, value in (("RANK", rank), ("WORLD_SIZE", world_size)):
        if value is not None:
            monkeypatch.setenv(name, value)
    assert shards.shard_of("auto") == found


@pytest.mark.parametrize(("rank", "world_size"), [("2", "2"), ("-1", "2"), ("0", "0"), ("one", "2"), ("", "2")])
def test_an_environment_that_makes_no_sense_is_an_error_at_once(group, monkeypatch, rank, world_size):
    monkeypatch.setenv("RANK", rank)
    monkeypatch.setenv("WORLD_SIZE", world_size)
    with pytest.raises(ValueError, match=rf"RANK='{rank}' and WORLD_SIZE='{world_size}'.*pass shard=\(index, count\)"):
        Loader(Rows(8), shard="auto")


def test_a_group_of_one_is_believed_more_than_the_environment(group, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    group((0, 1))
    assert shards.shard_of("auto") == (0, 1)


# Warnings


@pytest.fixture
def warned():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught


def test_no_shard_in_a_group_of_several_is_warned_of_once_at_the_users_line(group, warned):
    with Loader(Rows(8), 4) as loader:
        group((1, 2))
        for _ in range(2):
            assert len(first_column(loader)) == 2
    (warning,) = warned
    assert warning.filename == __file__
    assert "process 1 of 2" in str(warning.message)
    assert "shard='auto'" in str(warning.message)
    assert "shard=(0, 1) if each process" in str(warning.message)


@pytest.mark.parametrize("shard", [(0, 1), (1, 2), "auto"])
def test_a_shard_is_not_warned_of(group, warned, shard):
    group((1, 2))
    with Loader(Rows(8), 4, shard=shard) as loader:
        loader.warm_up()
        list(loader)
    assert warned == []


def test_no_shard_without_a_group_is_not_warned_of(group, warned, monkeypatch):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    group((0, 1))
    with Loader(Rows(8), 4) as loader:
        list(loader)
    assert warned == []


@pytest.mark.parametrize(("rank", "count"), shards._LAUNCHERS)
def test_auto_that_finds_nobody_says_so_if_a_launcher_has_started_several(group, monkeypatch, warned, rank, count):
    """Their numbers are not taken: srun may number machines, and frameworks then start processes on each."""
    monkeypatch.setenv(count, "4")
    if rank != "RANK":
        monkeypatch.setenv(rank, "3")
    with Loader(Rows(8), 4, shard="auto") as loader:
        assert len(first_column(loader)) == 2
    (warning,) = warned
    assert warning.filename == __file__
    assert f"{count}=4, {rank}=" in str(warning.message)


@pytest.mark.parametrize("value", ["1", "", "four"])
def test_a_launcher_of_one_says_nothing(group, monkeypatch, warned, value):
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", value)
    with Loader(Rows(8), 4, shard="auto") as loader:
        list(loader)
    assert warned == []


# For real

JAX = """
import sys
import numpy as np
import jax
import stoker
from jax._src import xla_bridge

with stoker.Loader(np.arange(8), 4, shard="auto") as loader:
    assert len(loader) == 2
    assert len(list(loader)) == 2
assert not xla_bridge.backends_are_initialized(), "asking has started a backend"
"""


@pytest.mark.skipif(find_spec("jax") is None, reason="jax is not installed")
def test_asking_jax_starts_none_of_its_backends():
    """After that, jax.distributed.initialize() would be refused."""
    ran = subprocess.run([sys.executable, "-c", JAX], capture_output=True, text=True, timeout=100, check=False)
    assert ran.returncode == 0, ran.stderr
