"""What rotation delivers: each sample just so often, the same on every backend, from one making in an epoch."""

from __future__ import annotations

import functools
import itertools
import pickle
import threading
import time
from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import stoker
from stoker import Inline, Loader, Processes, Rotation, Threads
from tests.conftest import BACKENDS
from tests.datasets import Augmented, Forest, Growing, Ragged, Rows
from tests.rotation.datasets import Counted, Fresh, Particular, Various, as_list, calls, pickled, spoil
from tests.streams import Cases, assert_same, epochs

pytestmark = pytest.mark.timeout(120)  # a hang is a failure

MEDIA = ["memory", "disk"]


def rotation(times: int, medium: str, folder, size: int | None = None) -> Rotation:
    return Rotation(times, medium, size, folder if medium == "disk" else None)


# The same stream

CASES = {
    "in order": (Rows(50), {"batch_size": 8, "rotation": Rotation(2)}),
    "shuffled": (Augmented(50), {"batch_size": 8, "shuffle": True, "seed": 3, "rotation": Rotation(3, size=12)}),
    "nearby": (Augmented(50), {"batch_size": 8, "shuffle": 10, "rotation": Rotation(2, size=20)}),
    "single samples": (Forest(9), {"batch_size": None, "shuffle": True, "rotation": Rotation(4, size=4)}),
    "all of it in one batch": (Augmented(7), {"batch_size": 64, "shuffle": True, "rotation": Rotation(5, size=3)}),
    "every container and leaf": (Forest(20), {"batch_size": 6, "rotation": Rotation(2, size=5)}),
    "own collate": (Various(30), {"batch_size": 7, "collate": as_list, "shuffle": True, "rotation": Rotation(2)}),
    "own collate that writes": (Fresh(30), {"batch_size": 8, "collate": spoil, "rotation": Rotation(4, size=3)}),
    "single samples of every form": (Various(30), {"batch_size": None, "rotation": Rotation(2, size=7)}),
    "padded": (Ragged(20), {"batch_size": 6, "collate": stoker.pad, "rotation": Rotation(3, size=8)}),
    "growing batches": (Growing(64), {"batch_size": 4, "rotation": Rotation(2, size=8)}),
    "a factory": (functools.partial(Augmented, 33), {"batch_size": 10, "rotation": Rotation(2, size=6)}),
    "the last one dropped": (Augmented(50), {"batch_size": 8, "drop_last": True, "rotation": Rotation(3, size=9)}),
    "one shard": (Augmented(50), {"batch_size": 8, "shard": (1, 3), "shuffle": True, "rotation": Rotation(3, size=9)}),
    "much prefetch": (Augmented(50), {"batch_size": 1, "prefetch": 20, "rotation": Rotation(2, size=4)}),
    "nothing": ([], {"rotation": Rotation(2)}),
    "nothing after all": (functools.partial(Rows, 0), {"rotation": Rotation(2)}),
    "less than a round": (Rows(3), {"batch_size": 100, "drop_last": True, "rotation": Rotation(2)}),
}


STREAMS = Cases(CASES)


@pytest.mark.parametrize("case", CASES)
def test_the_same_stream_on_other_backends(case, backend):
    """Contract: the same stream for any backend and any number of workers, random augmentation included."""
    STREAMS.check(case, backend)


@pytest.mark.parametrize("case", ["shuffled", "every container and leaf"])
@pytest.mark.parametrize("backend", BACKENDS, ids=repr)
def test_the_same_stream_on_every_backend_from_disk(case, backend, tmp_path):
    dataset, options = CASES[case]
    kept = options["rotation"]
    options = options | {"rotation": rotation(kept.times, "disk", tmp_path, kept.size)}
    with Loader(dataset, workers=backend, **options) as loader:
        assert_same(epochs(loader, 3), STREAMS.expected(case)[1])


def test_the_oracle_itself_is_right():
    """Inline against a plain loop: pass after pass over each block."""
    with Loader(Forest(5), 4, rotation=Rotation(2, size=3)) as loader:
        (got,) = epochs(loader, 1)
    samples = [Forest(5)[k] for k in range(5)]
    order = [0, 1, 0, 1, 2, 3, 4, 2, 3, 4]
    assert [len(batch["array"]) for batch in got] == [4, 4, 2]
    for number, batch in enumerate(got):
        wanted = [samples[k] for k in order[4 * number : 4 * number + 4]]
        assert np.array_equal(batch["array"], np.stack([sample["array"] for sample in wanted]))
        assert batch["pair"].right[1] == [sample["pair"].right[1] for sample in wanted]
        assert batch["raw"] == [sample["raw"] for sample in wanted]
        assert batch["record"].label.tolist() == [sample["record"].label for sample in wanted]


def test_all_uses_of_a_sample_in_an_epoch_are_the_same_and_epochs_differ(backend):
    with Loader(Augmented(30), 7, shuffle=True, workers=backend, rotation=Rotation(3, size=8)) as loader:
        got = epochs(loader, 3)
    seen = []
    for epoch in got:
        rows: dict[int, set[bytes]] = {}
        for batch in epoch:
            for index, row in zip(batch["index"].tolist(), batch["row"], strict=True):
                rows.setdefault(index, set()).add(row.tobytes())
        assert [len(rows[index]) for index in range(30)] == [1] * 30
        seen.append(rows)
    for one, other in itertools.combinations(seen, 2):
        assert not any(one[index] == other[index] for index in range(30)), "each is made anew"


@pytest.mark.parametrize("size", [None, 3], ids=["more than a batch", "less than a batch"])
def test_a_collate_that_writes_into_its_samples_spoils_no_other_use(backend, size):
    """Neither later ones nor, where fewer rotate than a batch holds, another in the same batch."""
    with Loader(Fresh(12), 8, collate=spoil, workers=backend, rotation=Rotation(4, size=size)) as loader:
        found = Counter(int(row[0]) for batch in loader for row in batch)
    assert found == Counter({index + 1000: 4 for index in range(12)})


@pytest.mark.parametrize("workers", [Inline(), Threads(2), Processes(2)], ids=repr)
@pytest.mark.parametrize("dataset", [Various(30), Particular(12), Forest(12)], ids=lambda one: type(one).__name__)
def test_a_sample_is_the_same_at_each_use_whatever_it_is(dataset, workers):
    """Its classes, too: the user's collate must not find another kind of thing at the second use than at the first."""
    with Loader(dataset, 4, collate=pickled, workers=workers, rotation=Rotation(3, size=6)) as loader:
        got = [sample for batch in loader for sample in pickle.loads(batch)]
    order = [block * 6 + k for block in range(len(dataset) // 6) for _ in range(3) for k in range(6)]
    assert_same(got, [dataset[index] for index in order])


def test_tensors_of_any_kind_are_the_same_at_each_use():
    torch = pytest.importorskip("torch")
    data = [
        torch.arange(3),
        torch.eye(3).to_sparse(),
        torch.nn.Parameter(torch.ones(2)),
        torch.ones(2, requires_grad=True),
        torch.ones(2, 3).t(),
        torch.ones(2, dtype=torch.complex64).conj(),
        torch.zeros(0),
    ]
    with Loader(data, 1, collate=pickled, rotation=Rotation(2)) as loader:
        got = [pickle.loads(batch)[0] for batch in loader]
    for mine, theirs in zip(got, [*data, *data], strict=True):
        assert type(mine) is type(theirs)
        assert (mine.layout, mine.dtype, mine.requires_grad) == (theirs.layout, theirs.dtype, theirs.requires_grad)
        assert torch.equal(mine.to_dense().resolve_conj(), theirs.to_dense().resolve_conj())


def test_what_cannot_be_kept_is_an_error_that_says_what_can():
    with Loader([threading.Lock()] * 4, 2, collate=as_list, rotation=Rotation(2)) as loader:
        with pytest.raises(TypeError, match="cannot pickle") as caught:
            next(iter(loader))
    assert any("samples that rotate are kept as" in note for note in caught.value.__notes__)


@pytest.mark.parametrize("backend", [Inline(), Threads(2), Processes(2)], ids=repr)
def test_tensors_arrive_as_tensors(backend):
    torch = pytest.importorskip("torch")
    kinds = [torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64]
    data = [{kind: torch.full((2, 3), k).to(kind) for kind in kinds} | {"zero_d": torch.tensor(k)} for k in range(10)]
    with Loader(data, 4, workers=backend, rotation=Rotation(2, size=5)) as loader:
        got = [{key: value.clone() for key, value in batch.items()} for batch in loader]
    order = [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 5, 6, 7, 8, 9]
    for number, batch in enumerate(got):
        for key, value in batch.items():
            assert torch.equal(value, torch.stack([data[k][key] for k in order[4 * number : 4 * number + 4]]))
            assert key == "zero_d" or value.dtype == key


# Exact


@st.composite
def shapes(draw):
    return {
        "n": draw(st.integers(1, 40)),
        "batch_size": draw(st.one_of(st.none(), st.integers(1, 20))),
        "times": draw(st.integers(2, 5)),
        "size": draw(st.one_of(st.none(), st.integers(1, 15))),
        "shuffle": draw(st.sampled_from([False, True, 5])),
        "shards": draw(st.integers(1, 4)),
        "medium": draw(st.sampled_from(MEDIA)),
        "prefetch": draw(st.integers(1, 3)),
    }


def check_multiset(shape, workers, folder) -> None:
    n, times, shards = shape["n"], shape["times"], shape["shards"]
    found, lengths = Counter(), []
    for shard in range(shards):
        with Loader(
            np.arange(n),
            shape["batch_size"],
            shuffle=shape["shuffle"],
            shard=(shard, shards),
            prefetch=shape["prefetch"],
            workers=workers,
            rotation=rotation(times, shape["medium"], folder, shape["size"]),
        ) as loader:
            batches = [np.atleast_1d(batch).tolist() for batch in loader]
            lengths.append(len(batches))
            assert len(batches) == len(loader)
            found.update(itertools.chain(*batches))
    assert len(set(lengths)) == 1, "every shard has as many batches"
    rest = n * times % (shards * (shape["batch_size"] or 1))
    spare = max(0, shards - rest) if rest else 0  # the documented case: so many uses are repeated
    assert found.total() == n * times + spare
    assert all(found[index] >= times for index in range(n))
    assert spare or set(found.values()) == {times}


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(shapes())
def test_each_sample_comes_just_so_often_inline(tmp_path, shape):
    check_multiset(shape, Inline(), tmp_path)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(shapes(), st.integers(1, 4))
def test_each_sample_comes_just_so_often_from_threads(tmp_path, shape, count):
    check_multiset(shape, Threads(count), tmp_path)


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(shapes(), st.integers(1, 4))
def test_each_sample_comes_just_so_often_from_forks(tmp_path, shape, count):
    check_multiset(shape, Processes(count, start="fork"), tmp_path)


@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(shapes(), st.integers(1, 4))
def test_each_sample_comes_just_so_often_from_the_nursery(tmp_path, shape, count):
    check_multiset(shape, Processes(count), tmp_path)


# Made once


@pytest.mark.parametrize("medium", MEDIA)
def test_each_sample_is_made_once_an_epoch(backend, medium, tmp_path):
    """n calls and not n * times; and those of the next epoch, which is being prefetched."""
    log = tmp_path / "log"
    kept = rotation(4, medium, tmp_path, size=15)
    with Loader(Counted(log, 60), 5, shuffle=True, workers=backend, rotation=kept) as loader:
        assert all(len(epoch) == 48 for epoch in epochs(loader, 2))
    made = calls(log)
    assert set(made) == set(range(60))
    assert set(made.values()) <= {2, 3}
    ahead = 0 if isinstance(backend, Inline) else backend.n * 4 * 5
    assert made.total() - 2 * 60 <= min(15 + ahead, ahead)


@pytest.mark.parametrize("workers", [Inline(), Threads(3), Processes(2)], ids=repr)
def test_shards_make_each_sample_once_but_for_those_at_their_borders(workers, tmp_path):
    log = tmp_path / "log"
    for shard in range(4):
        with Loader(
            Counted(log, 50), 7, shuffle=True, shard=(shard, 4), workers=workers, rotation=Rotation(3, size=9)
        ) as loader:
            iterator = iter(loader)
            for _ in range(len(loader)):
                next(iterator)
    made = calls(log)
    ahead = 0 if isinstance(workers, Inline) else workers.n * 4 * 7
    assert set(made) == set(range(50))
    assert made.total() <= 50 + 3 + 4 * ahead


def test_the_whole_dataset_may_rotate_at_once(backend, tmp_path):
    log = tmp_path / "log"
    with Loader(Counted(log, 40), 6, shuffle=True, workers=backend, rotation=Rotation(3)) as loader:
        got = [batch["index"].tolist() for batch in loader]
    order = list(itertools.chain(*got))
    for turn in range(3):
        assert sorted(order[turn * 40 : (turn + 1) * 40]) == list(range(40))
    assert set(calls(log).values()) <= {1, 2}


@pytest.mark.parametrize("workers", [Threads(3), Processes(3), Processes(2, start="fork")], ids=repr)
def test_out_of_order_each_batch_comes_once_and_nothing_is_torn(workers):
    """Sample 0 is slow, and whole blocks overtake it: their cells are others' long before it is done."""
    options = {"shuffle": True, "rotation": Rotation(3, size=6)}
    with Loader(Dawdling(60), 4, workers=workers, in_order=False, **options) as loader:
        got = epochs(loader, 2)
    with Loader(Augmented(60), 4, **options) as oracle:
        wanted = epochs(oracle, 2)
    for mine, theirs in zip(got, wanted, strict=True):
        assert Counter(map(frozen, mine)) == Counter(map(frozen, theirs))


def frozen(batch) -> tuple:
    return tuple(batch["index"].tolist()), batch["row"].tobytes()


class Dawdling(Augmented):
    def __getitem__(self, index):
        sample = super().__getitem__(index)
        if index == 0:
            time.sleep(0.2)
        return sample
