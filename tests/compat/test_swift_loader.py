"""SwiftLoader's stream: who gets which samples, in which order, in which form."""

from __future__ import annotations

import gc
import os
import pickle
import re
import subprocess
import sys
import threading
import weakref
from collections import Counter
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

import stoker
from stoker import ClosedError, CollateError
from stoker.compat.swift_loader import SwiftLoader
from tests.compat.numbered import (
    Broken,
    Gathered,
    Lists,
    Noisy,
    Numbers,
    Unmakeable,
    from_json,
    make,
    make_numbers,
    numbered,
    read,
    to_json,
    total,
)
from tests.datasets import Ragged


def streams(epochs: int = 1, **options) -> list[list[list[list[int]]]]:
    """What each consumer gets: epochs of batches."""
    found = []
    for consumer in range(options["consumers"]):
        with make(**options) as loader:
            loader.start(consumer)
            found.append(read(loader, epochs))
            assert len(loader) == len(found[-1][0])
    return found


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize(
    ("n", "consumers", "expected"),
    [
        (10, 1, [[[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]]),
        (10, 2, [[[0, 1, 2], [3, 4]], [[5, 6, 7], [8, 9]]]),
        (10, 3, [[[0, 1, 2], [3]], [[4, 5, 6], [7]], [[8, 9]]]),
        (9, 2, [[[0, 1, 2], [3, 4]], [[5, 6, 7], [8]]]),
        (4, 3, [[[0, 1]], [[2, 3]], []]),  # two for each of the first two, and none for the last
    ],
)
def test_in_order_each_consumer_has_its_block_whatever_the_workers(n, consumers, workers, expected):
    got = streams(2, n=n, consumers=consumers, workers=workers)
    assert got == [[batches, batches] for batches in expected]


@pytest.mark.parametrize("dataset_class", [Numbers, Gathered, make_numbers, lambda n: list(range(n))])
def test_the_dataset_is_made_by_a_class_or_anything_to_call(dataset_class):
    with make(consumers=2, dataset_class=dataset_class) as loader:
        loader.start(1)
        assert read(loader) == [[[5, 6, 7], [8, 9]]]


@pytest.mark.parametrize("consumers", [1, 3])
def test_shuffled_shares_cover_the_dataset_once_and_each_epoch_has_another_order(consumers):
    got = streams(4, n=100, batch_size=7, consumers=consumers, workers=2, shuffle=True, seed=5)
    for epoch in range(4):
        assert Counter(chain(*chain(*(mine[epoch] for mine in got)))) == Counter(range(100))
    for mine in got:
        orders = [list(chain(*epoch)) for epoch in mine]
        assert len({tuple(order) for order in orders}) == 4
        assert all(Counter(order) == Counter(orders[0]) for order in orders)


@pytest.mark.parametrize("window", [1, 4, 10_000])
def test_no_sample_moves_as_far_as_nearby_shuffle(window):
    (got,) = streams(3, n=60, consumers=1, shuffle=True, nearby_shuffle=window, seed=1)
    for epoch in got:
        order = list(chain(*epoch))
        assert max(abs(place - index) for place, index in enumerate(order)) < window
        assert (order == sorted(order)) == (window == 1)


def test_nearby_shuffle_is_five_batches_by_default():
    kinds = [streams(2, n=200, consumers=1, batch_size=4, shuffle=True, seed=1, **more)
             for more in ({}, {"nearby_shuffle": 20}, {"nearby_shuffle": 21})]  # fmt: skip
    assert kinds[0] == kinds[1] != kinds[2]


def test_one_seed_gives_one_order_and_another_another():
    first, same, other = (streams(2, n=50, consumers=2, shuffle=True, seed=seed) for seed in (3, 3, 4))
    assert first == same != other


def test_the_seed_is_drawn_when_the_loader_is_made():
    loader = make(100, 100, shuffle=True)
    copy = pickle.loads(pickle.dumps(loader))
    with loader, copy:
        loader.start(0)
        copy.start(0)
        assert read(loader) == read(copy)


def test_consumers_draw_different_random_numbers():
    def noise(consumer: int) -> list[float]:
        with make(20, 10, consumers=2, dataset_class=Noisy, seed=1) as loader:
            loader.start(consumer)
            return next(iter(loader)).tolist()

    assert noise(0) == noise(0)
    assert not set(noise(0)) & set(noise(1))


def test_ints_become_arrays_and_nested_lists_stay_nested_lists():
    with make(2, 2) as loader:
        loader.start(0)
        (batch,) = loader
        assert isinstance(batch, np.ndarray)
        assert batch.dtype == np.int64
    with make(2, 2, dataset_class=Lists) as loader:
        loader.start(0)
        ((numbers, (others, rows), words),) = loader
        assert (numbers.tolist(), others.tolist()) == ([0, 1], [1, 2])
        assert (rows.tolist(), words) == ([[0, 0, 0], [1, 1, 1]], ["sample 0", "sample 1"])


def test_what_collate_fn_gives_is_delivered_as_it_is():
    with make(5, 3, collate_fn=total, workers=2) as loader:
        loader.start(0)
        batches = list(loader)
    assert [batch["sum"] for batch in batches] == [3, 7]
    assert [batch["rows"].tolist() for batch in batches] == [[0, 1, 2], [3, 4]]
    assert all(not batch["rows"].flags.owndata for batch in batches), "a copy, and not a view of shared memory"


def test_the_encoder_runs_in_the_worker_and_the_decoder_in_the_consumer():
    with make(5, 3, collate_fn=numbered, batch_encoder=to_json, batch_decoder=from_json) as loader:
        loader.start(0)
        batches = list(loader)
    assert [batch["numbers"] for batch in batches] == [[0, 1, 2], [3, 4]]
    assert all(batch["decoded_by"] == os.getpid() != batch["encoded_by"] for batch in batches)


def test_the_encoder_gets_what_is_collated_by_default():
    encoding = {"batch_encoder": pickle.dumps, "batch_decoder": pickle.loads}
    with make(5, 3, dataset_class=Lists, **encoding) as loader, make(5, 3, dataset_class=Lists) as plain:
        loader.start(0)
        plain.start(0)
        for (numbers, (_, rows), words), wanted in zip(loader, plain, strict=True):
            assert numbers.tolist() == wanted[0].tolist()
            assert rows.tolist() == wanted[1][1].tolist()
            assert words == wanted[2]


def test_an_empty_encoding_travels_too():
    with make(3, 3, batch_encoder=lambda batch: b"", batch_decoder=lambda encoded: encoded) as loader:
        loader.start(0)
        assert list(loader) == [b""]


def test_breaking_off_begins_the_next_epoch_next_time():
    with make(30, shuffle=True, seed=2) as loader, make(30, shuffle=True, seed=2) as whole:
        loader.start(0)
        whole.start(0)
        next(iter(loader))
        assert read(loader) == read(whole, 2)[1:]


@pytest.mark.parametrize("options", [{}, {"collate_fn": np.array}], ids=["plain", "collate_fn"])
def test_the_iterator_holds_no_batch(options):
    with make(30, 3, **options) as loader:
        loader.start(0)
        iterator = iter(loader)
        held = weakref.ref(next(iterator))
        assert held() is None, "a slot is kept from being used again"


def test_two_loaders_in_one_process():
    with make(6) as one, make(6, consumers=2) as two:
        one.start(0)
        two.start(1)
        assert [read(one), read(two), read(one)] == [[[[0, 1, 2], [3, 4, 5]]], [[[3, 4, 5]]], [[[0, 1, 2], [3, 4, 5]]]]


@pytest.mark.parametrize("use", [len, iter, list])
def test_use_before_the_start_says_what_to_do(use):
    with pytest.raises(RuntimeError, match=r"call start\(consumer_index\)"):
        use(make())


def test_a_second_start_says_what_to_do():
    with make(consumers=2) as loader:
        loader.start(0)
        with pytest.raises(RuntimeError, match="make one for each consumer"):
            loader.start(1)
        assert read(loader) == [[[0, 1, 2], [3, 4]]]


@pytest.mark.parametrize("index", [-1, 2, 17])
def test_a_consumer_that_does_not_exist(index):
    with make(consumers=2) as loader:
        with pytest.raises(ValueError, match=f"consumer_index={index}: with nb_consumer=2, write a number from 0 to 1"):
            loader.start(index)
        loader.start(1)  # nothing was spoilt


def test_after_the_close():
    loader = make()
    loader.start(0)
    iterator = iter(loader)
    batch = next(iterator)
    loader.close()
    loader.close()
    assert batch.tolist() == [0, 1, 2]
    for use in (lambda: next(iterator), lambda: list(loader), lambda: loader.start(0)):
        with pytest.raises(ClosedError, match="closed"):
            use()
    make().close()


def test_a_forgotten_loader_leaves_nothing(tmp_path):
    loader = make(logger=str(tmp_path / "log"))
    loader.start(0)
    next(iter(loader))
    del loader
    gc.collect()  # that nothing is left is checked after every test


def test_errors_of_the_dataset_name_the_sample():
    with make(consumers=2, dataset_class=Broken) as loader:
        loader.start(1)
        iterator = iter(loader)
        assert next(iterator).tolist() == [5, 6, 7]
        with pytest.raises(LookupError, match="the last one is missing") as caught:
            next(iterator)
        assert any("dataset[9] raised it, sample 4 of this share" in note for note in caught.value.__notes__)


def test_a_dataset_that_cannot_be_made_is_an_error_of_start():
    loader = SwiftLoader(Unmakeable, {}, 3, 1, 2, validate=False)
    with pytest.raises(OSError, match="no such disk"):
        loader.start(0)


def test_an_unpicklable_encoder_is_said_early():
    lock = threading.Lock()
    with pytest.raises(TypeError, match=r"pickle|travel"):
        make(collate_fn=lambda samples: (lock, samples)[1])


def test_ragged_samples_are_an_error_with_an_encoder_too():
    with pytest.raises(CollateError, match="ragged"):
        make(dataset_class=Ragged, batch_encoder=pickle.dumps, batch_decoder=pickle.loads)


def test_importing_the_front_imports_no_framework():
    script = "import sys, stoker.compat.swift_loader; assert not {'torch', 'jax', 'tensorflow'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_the_front_is_built_on_the_public_api_alone():
    for file in (Path(stoker.__file__).parent / "compat").glob("*.py"):
        imports = re.findall(r"^ *(?:from|import) (stoker[.\w]*)", file.read_text(), re.MULTILINE)
        assert [name for name in imports if name != "stoker" and not name.startswith("stoker.compat")] == [], file.name
        used = set(re.findall(r"(?<![.\w`])stoker\.(\w+)", file.read_text())) - {"compat"}
        assert used <= set(stoker.__all__), file.name
