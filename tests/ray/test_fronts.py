"""The same code with another argument: streams, files, caches, the torch drop-in, and states that go to and fro."""

from __future__ import annotations

import functools
import io
import multiprocessing

import fsspec
import fsspec.asyn
import numpy as np
import pytest
import ray

import stoker
from stoker import Cache, Chunks, Loader, Rotation, ShippingError
from tests.datasets import Augmented, Rows
from tests.files.servers import forget, s3_server
from tests.page.requests import get, next_event
from tests.ray.conftest import until
from tests.streams import assert_same, epochs

pytestmark = pytest.mark.timeout(200)


def doubled(item):
    return {"twice": np.full(3, 2 * item), "name": str(item)}


def test_streams():
    with stoker.stream(doubled, range(50), workers=stoker.Ray(2)) as results, stoker.stream(doubled, range(50)) as same:
        assert_same([list(results)], [list(same)])


def test_an_item_that_cannot_travel_is_an_error_in_its_turn():
    items = [1, 2, (one for one in ()), 4]
    with stoker.stream(doubled, items, workers=stoker.Ray(1)) as results:
        assert next(results)["name"] == "1"
        assert next(results)["name"] == "2"
        with pytest.raises(ShippingError, match="an item, a generator, cannot be pickled"):
            next(results)
        assert next(results)["name"] == "4"


def test_chunk_files(tmp_path):
    for number in range(4):
        np.save(tmp_path / f"{number}.npy", np.arange(60).reshape(30, 2) + 100 * number)
    chunks = Chunks(str(tmp_path / "*.npy"))
    with Loader(chunks, 7, shuffle=True, workers=stoker.Ray(2)) as loader, Loader(chunks, 7, shuffle=True) as same:
        wanted = epochs(same, 2)
        assert_same(epochs(loader, 2), wanted)
        iterator = iter(loader)
        for _ in range(3):
            next(iterator)
        state = loader.state_dict()
    with Loader(chunks, 7, shuffle=True, workers=stoker.Threads(2)) as loader:
        loader.load_state_dict(state)
        assert len(list(loader)) == len(wanted[0]) - 3


def test_chunk_files_of_an_object_store(monkeypatch):
    """Fsspec's settings come along; environment variables are those of the nodes, or of ``runtime_env``."""
    credentials = {"AWS_ACCESS_KEY_ID": "AKIDOFNOBODY", "AWS_SECRET_ACCESS_KEY": "s3cretOfNobody"}
    for name, value in credentials.items():
        monkeypatch.setenv(name, value)
    fsspec.asyn.get_loop()  # a thread that stays
    with s3_server() as port:
        monkeypatch.setitem(fsspec.config.conf, "s3", {"endpoint_url": f"http://127.0.0.1:{port}"})
        system = fsspec.filesystem("s3")
        system.mkdir("bucket")
        for number in range(3):
            file = io.BytesIO()
            np.save(file, np.arange(60).reshape(30, 2) + 100 * number)
            system.pipe(f"bucket/{number}.npy", file.getvalue())
        chunks = Chunks("s3://bucket/*.npy")
        workers = stoker.Ray(2, runtime_env={"env_vars": credentials})
        with Loader(chunks, 7, shuffle=True, workers=workers) as loader, Loader(chunks, 7, shuffle=True) as same:
            assert_same(epochs(loader, 2), epochs(same, 2))
        del system
        forget(fsspec.get_filesystem_class("s3"))


def test_a_state_that_was_saved_on_ray_goes_on_in_processes_and_back():
    with Loader(Augmented(100), 5, shuffle=True) as same:
        (wanted,) = epochs(same, 1)
    got, state = [], None
    for workers in (stoker.Ray(2), stoker.Processes(2), stoker.Ray(2), stoker.Inline()):
        with Loader(Augmented(100), 5, shuffle=True, workers=workers) as loader:
            if state is not None:
                loader.load_state_dict(state)
            for _, batch in zip(range(5), loader, strict=False):
                got.append({key: value.copy() for key, value in batch.items()})
            state = loader.state_dict()
    assert_same([got], [wanted])


def test_a_cache_is_filled_and_read_by_actors(tmp_path):
    options = {"shuffle": True, "cache": Cache(tmp_path / "cache", refresh_every=2)}
    with Loader(Augmented(60), 5, **options) as same:
        wanted = epochs(same, 4)
    with Loader(
        Augmented(60), 5, shuffle=True, cache=Cache(tmp_path / "other", refresh_every=2), workers=stoker.Ray(2)
    ) as on:
        assert_same(epochs(on, 4), wanted)


def test_rotation_is_refused_before_anything_starts():
    with pytest.raises(ValueError, match=r"rotation= with workers=Ray\(n=2\).*Pass cache="):
        Loader(Rows(), 5, rotation=Rotation(2), workers=stoker.Ray(2))


def test_what_the_training_process_changes_arrives_with_the_next_epoch():
    dataset = Rows(40)
    with Loader(dataset, 5, workers=stoker.Ray(1)) as loader:
        assert sum(int(batch.sum()) for batch in loader) == 4 * 780
        dataset.data = dataset.data + 1
        assert sum(int(batch.sum()) for batch in loader) == 4 * 820


def test_shared_memory_of_multiprocessing_cannot_travel_and_is_named():
    dataset = Rows(40)
    dataset.value = multiprocessing.get_context("spawn").Value("i", 3)
    with pytest.raises(ShippingError, match=r"Rows\.value.*cannot be sent to workers on Ray"):
        Loader(dataset, 5, workers=stoker.Ray(1))


class Writing(Rows):
    def __getitem__(self, index: int):
        self.data[index] += 1
        return self.data[index]


def test_a_dataset_that_writes_into_its_arrays_is_told_that_they_are_shared_there():
    with Loader(Writing(40), 5, workers=stoker.Ray(1)) as loader:
        with pytest.raises(ValueError, match="read-only") as caught:
            list(loader)
    assert any("copy" in note for note in caught.value.__notes__)
    with Loader(functools.partial(Writing, 40), 5, workers=stoker.Ray(1)) as loader:
        assert sum(int(batch.sum()) for batch in loader) == 4 * 820


def test_batches_are_the_users_own_to_write_into_and_to_keep():
    with Loader(Rows(400), 5, workers=stoker.Ray(2)) as loader:
        held = [batch for _ in range(2) for batch in loader]
    for batch in held:
        batch += 1
    assert np.array_equal(np.concatenate(held)[:, 0], [*range(1, 401)] * 2)


class Large(Rows):
    def __getitem__(self, index: int):
        return np.full(2**18, index)


def used_in_object_stores() -> float:
    return ray.cluster_resources()["object_store_memory"] - ray.available_resources()["object_store_memory"]


def test_an_object_is_let_go_of_when_it_was_copied_however_long_the_consumer_takes():
    before = used_in_object_stores()
    with Loader(Large(100), 4, workers=stoker.Ray(2)) as loader:
        iterator = iter(loader)
        batch = next(iterator)
        until(lambda: used_in_object_stores() <= before + 2**20, "8 MiB are prefetched, and none lies in a store")
        assert batch[3, 0] == 3


class TestDropIn:
    """``stoker.torch.DataLoader(..., workers=stoker.Ray(n))``."""

    torch = pytest.importorskip("torch")

    def test_the_same_batches_as_torchs(self):
        from torch.utils.data import DataLoader, TensorDataset

        import stoker.torch

        dataset = TensorDataset(self.torch.arange(100.0).reshape(50, 2), self.torch.arange(50))
        got, wanted = [], []
        for kind, more, into in (
            (DataLoader, {"num_workers": 2}, wanted),
            (stoker.torch.DataLoader, {"workers": stoker.Ray(2)}, got),
        ):
            self.torch.manual_seed(7)
            loader = kind(dataset, batch_size=8, shuffle=True, **more)
            assert loader.num_workers == 2
            into += [[x.tolist(), y.tolist()] for _ in range(2) for x, y in loader]
        assert got == wanted

    def test_arguments_that_do_not_go_together_are_refused(self):
        import stoker.torch

        make = functools.partial(stoker.torch.DataLoader, self.torch.arange(5))
        with pytest.raises(ValueError, match="leave num_workers out"):
            make(workers=stoker.Ray(2), num_workers=3)
        with pytest.raises(ValueError, match="without autoscale"):
            make(workers=stoker.Ray(2, autoscale=(1, 3)))
        with pytest.raises(TypeError, match=r"pass stoker\.Ray"):
            make(workers=2)


def test_the_live_page_shows_on_which_machine_each_worker_is(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with Loader(Rows(64), 4, workers=stoker.Ray(3), watch=True) as loader:
        list(loader)
        connection, response = get(loader.watch_url, "/events")
        (told,) = next_event(response)
        connection.close()
        nodes = [worker["node"] for worker in told["stats"]["by_worker"]]
        assert nodes == [worker.node for worker in loader.stats().by_worker]
        assert any(nodes)
        assert told["stats"]["transferring"] > 0
