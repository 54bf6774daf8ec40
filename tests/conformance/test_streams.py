"""What every backend must do alike. ``Inline`` is the oracle; the backends are in ``conftest.BACKENDS``."""

from __future__ import annotations

import functools
import random

import numpy as np
import pytest

import stoker
from stoker import Loader
from tests.datasets import Augmented, Encoded, Forest, Gathering, Growing, Ragged, Rows, Slow
from tests.streams import Cases, epochs


def sums(samples):
    return {"sum": np.array([sample.sum() for sample in samples]), "count": len(samples)}


CASES = {
    "in order": (Rows(50), {"batch_size": 8}),
    "shuffled": (Rows(50), {"batch_size": 8, "shuffle": True}),
    "nearby": (Rows(50), {"batch_size": 8, "shuffle": 10}),
    "augmented": (Augmented(50), {"batch_size": 8, "shuffle": True, "seed": 3}),
    "every container and leaf": (Forest(20), {"batch_size": 6}),
    "mappings of other classes": (Encoded(20), {"batch_size": 6}),
    "whole batches": (Gathering(50), {"batch_size": 7, "shuffle": True}),
    "a class": (Rows, {"batch_size": 30}),
    "a partial": (functools.partial(Augmented, 33), {"batch_size": 10}),
    "a function": (lambda: Rows(21), {"batch_size": 5}),
    "own collate": (Rows(20), {"batch_size": 6, "collate": sums}),
    "padded": (Ragged(20), {"batch_size": 6, "collate": stoker.pad}),
    "growing batches": (Growing(64), {"batch_size": 4}),
    "single samples": (Forest(9), {"batch_size": None}),
    "single objects": (["a", "b", "c"], {"batch_size": None}),
    "the last one dropped": (Rows(50), {"batch_size": 8, "drop_last": True}),
    "one shard": (Rows(50), {"batch_size": 8, "shard": (1, 3), "shuffle": True}),
    "little prefetch": (Rows(50), {"batch_size": 8, "prefetch": 1}),
    "much prefetch": (Rows(50), {"batch_size": 1, "prefetch": 20}),
    "nothing": ([], {}),
    "a bare array": (np.arange(10.0), {"batch_size": 3}),
    "columns": ({"x": np.arange(20.0).reshape(10, 2), "y": np.arange(10), "s": list("abcdefghij")}, {"batch_size": 4}),
}


STREAMS = Cases(CASES)


@pytest.mark.parametrize("case", CASES)
def test_the_same_stream_on_every_backend(case, backend):
    """Contract: the same stream for any backend and any number of workers, random augmentation included."""
    STREAMS.check(case, backend)


def test_the_oracle_itself_is_right():
    """Inline against a plain loop."""
    with Loader(Forest(10), 4) as loader:
        (got,) = epochs(loader, 1)
    samples = [Forest(10)[k] for k in range(10)]
    assert [batch["pair"].left.tolist() for batch in got] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert np.array_equal(got[1]["array"], np.stack([sample["array"] for sample in samples[4:8]]))
    assert got[2]["pair"].right[1] == ["8", "9"]
    assert got[0]["raw"] == [b"\x00", b"\x01", b"\x02", b"\x03"]
    assert got[0]["nothing"] is None
    assert got[0]["record"].label.tolist() == [True, False, True, False]
    assert got[0]["zero_d"].tolist() == [0, 1, 2, 3]


def test_epochs_differ_and_each_has_every_sample_once(backend):
    with Loader(Rows(40), 7, shuffle=True, workers=backend) as loader:
        orders = [[int(row[0]) for batch in epoch for row in batch] for epoch in epochs(loader, 3)]
    assert all(sorted(order) == list(range(40)) for order in orders)
    assert orders[0] != orders[1] != orders[2] != orders[0]


def test_out_of_order_gives_each_batch_once_and_epoch_after_epoch(backend):
    with Loader(Rows(60), 4, shuffle=True, workers=backend, in_order=False) as loader:
        got = epochs(loader, 3)
    with Loader(Rows(60), 4, shuffle=True) as oracle:
        wanted = epochs(oracle, 3)
    for mine, theirs in zip(got, wanted, strict=True):
        assert sorted(map(repr, mine)) == sorted(map(repr, theirs))


def test_a_slow_batch_holds_up_nothing_but_itself():
    with Loader(Slow(40), 4, workers=stoker.Processes(2), in_order=False) as loader:
        first = [int(batch[0, 0]) for batch in loader]
    assert first[-1] == 0
    assert sorted(first) == list(range(0, 40, 4))


def test_the_consumers_own_random_numbers_are_left_alone(backend):
    random.seed(5)
    np.random.seed(5)
    wanted = random.random(), np.random.rand()
    random.seed(5)
    np.random.seed(5)
    with Loader(Augmented(30), 5, workers=backend) as loader:
        for _ in loader:
            pass
        assert (random.random(), np.random.rand()) == wanted


def test_another_seed_is_another_stream(backend):
    streams = []
    for seed in (1, 2, 1):
        with Loader(Augmented(30), 5, shuffle=True, seed=seed, workers=backend) as loader:
            streams.append(repr(epochs(loader, 1)))
    assert streams[0] == streams[2] != streams[1]


def test_tensors_arrive_as_tensors(backend):
    torch = pytest.importorskip("torch")
    data = [{"x": torch.full((3,), float(k)), "y": torch.tensor(k)} for k in range(10)]
    with Loader(data, 4, workers=backend) as loader:
        got = [{key: value.clone() for key, value in batch.items()} for batch in loader]
    assert torch.equal(got[1]["x"], torch.stack([data[k]["x"] for k in range(4, 8)]))
    assert got[2]["y"].tolist() == [8, 9]


def test_a_framework_or_a_function_can_be_asked_for(backend):
    with Loader(Rows(8), 4, workers=backend, to=lambda batch: batch.sum()) as loader:
        assert list(loader) == [4 * 6, 4 * 22]
    torch = pytest.importorskip("torch")
    with Loader(Rows(8), 4, workers=backend, to="torch", device="cpu") as loader:
        assert all(isinstance(batch, torch.Tensor) for batch in loader)


def test_samples_that_fail_can_be_skipped(backend):
    from tests.datasets import Failing

    with Loader(Failing(20), 4, workers=backend, on_error="skip") as loader:
        for _ in range(2):
            assert [batch[:, 0].tolist() for batch in loader] == [
                [0, 1, 2, 3],
                [4, 5, 6, 7],
                [8, 9, 10, 11],
                [12, 14, 15],
                [16, 17, 18, 19],
            ]
        assert loader.stats().skipped == 2
    with Loader(Failing(20), 1, workers=backend, on_error="skip") as loader:
        assert [int(batch[0, 0]) for batch in loader] == [k for k in range(20) if k != 13]
