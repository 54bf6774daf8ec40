"""``set_epoch``, and how a training loop resumes by ``loader.epoch``: at an epoch's end, and in the middle of one."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest

from stoker import Cache, Chunks, Inline, Loader, Rotation, Threads
from stoker.plan import MAX_EPOCH, Plan
from stoker.stores.rotation_store import RotationStore, _NoRotationFile
from tests.datasets import Rows

EPOCHS = 3


class Index:
    """A number, but not one that can be compared."""

    def __index__(self) -> int:
        return 2


def make(workers=None, **options):
    return Loader(Rows(22), 5, shuffle=True, workers=workers or Inline(), **options)


def column(batch):
    return batch[:, 0].tolist()


@pytest.mark.parametrize(
    "epoch",
    [-1, True, np.True_, 1.0, "1", None, 2**53, 2**63, -(2**63), 10**5000, np.array([1, 2]), Fraction(1), object()],
    ids=lambda epoch: type(epoch).__name__,
)
def test_a_number_that_is_no_epoch_is_an_error_with_the_limit(epoch):
    with make() as loader, Loader(Rows, 5, workers=Threads(1)) as of_workers:
        for one in (loader, of_workers):
            one.set_epoch(2)
            with pytest.raises(
                ValueError, match=r"^set_epoch\((.|\n)*\): pass a whole number from 0 to 9007199254740991"
            ):
                one.set_epoch(epoch)
            assert one.epoch == 2


@pytest.mark.parametrize("epoch", [2, np.int8(2), np.array(2), Index()], ids=lambda epoch: type(epoch).__name__)
def test_any_whole_number_will_do(epoch):
    with make() as loader:
        loader.set_epoch(epoch)
        assert type(loader.epoch) is int
        assert json.loads(json.dumps(loader.state_dict()))["epoch"] == 2


@pytest.mark.parametrize("options", [{}, {"rotation": Rotation(2)}], ids=["plain", "rotation"])
def test_the_last_epoch_and_those_that_are_prefetched_after_it_can_be_read(backend, options):
    with make(backend, **options) as loader, make(**options) as oracle:
        for one in (loader, oracle):
            one.set_epoch(MAX_EPOCH)
        for _ in range(2):
            assert list(map(column, loader)) == list(map(column, oracle))
        state = loader.state_dict()
        assert state["epoch"] == MAX_EPOCH + 2
        loader.load_state_dict(state)
        assert len(list(loader)) == len(loader)


def test_with_a_cache_and_with_files_too(tmp_path):
    np.save(tmp_path / "all.npy", np.arange(40).reshape(20, 2))
    for loader in (
        make(cache=Cache(tmp_path / "cache", refresh_every=3)),
        Loader(Chunks(tmp_path / "all.npy"), 5, shuffle=True, workers=Threads(2)),
    ):
        with loader:
            loader.set_epoch(MAX_EPOCH)
            assert sum(len(batch) for _ in range(2) for batch in loader) == 2 * (22 if len(loader) == 5 else 20)
            loader.load_state_dict(loader.state_dict())


def test_a_billion_samples_rotate_in_the_last_epoch_as_in_the_first():
    """They are numbered through all epochs, and that number must fit 64 bits."""
    plan = Plan(10**9, 4, times=2, rotating=10, shuffle=True)
    counted = []

    class Counting(_NoRotationFile):
        def count(self, keys, uses, uses_in_all):
            counted.append(uses_in_all.tolist())
            return True

    store = RotationStore(plan, Counting())
    batch = plan.batch(MAX_EPOCH, 0)
    assert store.finish(MAX_EPOCH, store.keys(batch, plan.indices(batch)))
    assert counted == [[2, 2, 2, 2]]


# Training loops


def train(loader, seen, stop=None, *, set_epoch):
    """As people write it; stops after so many steps, and gives what a checkpoint would hold."""
    step = 0
    for epoch in range(loader.epoch, EPOCHS):
        if set_epoch:
            loader.set_epoch(epoch)  # as with torch's DistributedSampler
        for batch in loader:
            seen.append((epoch, column(batch)))
            step += 1
            if step == stop:
                return json.loads(json.dumps(loader.state_dict()))
    return json.loads(json.dumps(loader.state_dict()))


@pytest.mark.parametrize("set_epoch", [False, True])
@pytest.mark.parametrize("stop", range(1, 16))
def test_a_loop_over_the_epochs_left_goes_on_where_it_was(stop, set_epoch):
    """5 batches an epoch: 5, 10 and 15 are the last of an epoch, and their state says the next one's number."""
    whole, seen = [], []
    with make() as loader:
        train(loader, whole, set_epoch=set_epoch)
    with make(Threads(2)) as loader:
        state = train(loader, seen, stop, set_epoch=set_epoch)
        assert state["epoch"] == stop // 5
    with make(Threads(2)) as loader:
        loader.load_state_dict(state)
        train(loader, seen, set_epoch=set_epoch)
    assert seen == whole


@pytest.mark.parametrize("set_epoch", [False, True])
def test_so_it_does_over_files(tmp_path, set_epoch):
    for number in range(3):
        np.save(tmp_path / f"{number}.npy", np.repeat(np.arange(number * 7, number * 7 + 7), 2).reshape(7, 2))

    def make():
        return Loader(Chunks(tmp_path), 5, shuffle=True)

    whole = []
    with make() as loader:
        train(loader, whole, set_epoch=set_epoch)
    for stop in range(1, len(whole) + 1):
        seen = []
        with make() as loader:
            state = train(loader, seen, stop, set_epoch=set_epoch)
        with make() as loader:
            loader.load_state_dict(state)
            train(loader, seen, set_epoch=set_epoch)
        assert seen == whole
