"""Bad arguments fail in the constructor, with what to write instead; good ones of any form are understood."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import stoker
from stoker import Loader, Processes, Threads
from tests.datasets import Rows


class NoLength:
    def __getitem__(self, index):
        return index


BAD = {
    "no length": (lambda: Loader(NoLength()), TypeError, r"__len__.*stoker\.stream\(.*stoker\.Chunks\("),
    "a generator": (lambda: Loader(i for i in range(3)), TypeError, r"__getitem__.*stoker\.stream\("),
    "a path": (lambda: Loader("data/*.parquet"), TypeError, r"stoker\.Chunks\("),
    "X and y": (lambda: Loader((np.ones((4, 2)), np.ones(4))), TypeError, r"\(4, 2\), \(4,\).*\{\"x\": X.*list\("),
    "columns of two lengths": (lambda: Loader({"x": np.ones(4), "y": [1]}), ValueError, "'x': 4, 'y': 1"),
    "a dict of datasets": (lambda: Loader({"train": Rows(3)}), TypeError, r"dataset\['train'\] is a Rows.*Pass"),
    "a dict of dicts": (lambda: Loader({"train": {"x": 1}}), TypeError, "Pass a dict of arrays"),
    "a class without length": (lambda: Loader(NoLength), TypeError, "__len__"),
    "not a dataset": (lambda: Loader(3), TypeError, "__getitem__"),
    "batch_size 0": (lambda: Loader(Rows(), 0), ValueError, "batch_size"),
    "batch_size -1": (lambda: Loader(Rows(), -1), ValueError, "batch_size"),
    "batch_size 1.5": (lambda: Loader(Rows(), 1.5), TypeError, "batch_size"),
    "batch_size True": (lambda: Loader(Rows(), True), TypeError, "batch_size"),
    "shuffle -3": (lambda: Loader(Rows(), shuffle=-3), ValueError, "window"),
    "shuffle 0": (lambda: Loader(Rows(), shuffle=0), ValueError, "window"),
    "shuffle 'yes'": (lambda: Loader(Rows(), shuffle="yes"), TypeError, "shuffle"),
    "seed 'a'": (lambda: Loader(Rows(), seed="a"), TypeError, "seed"),
    "shard (3, 2)": (lambda: Loader(Rows(), shard=(3, 2)), ValueError, r"shard index 3.*2 shards"),
    "shard 3": (lambda: Loader(Rows(), shard=3), TypeError, "shard"),
    "shard 'all'": (lambda: Loader(Rows(), shard="all"), ValueError, "auto"),
    "workers -1": (lambda: Loader(Rows(), workers=-1), ValueError, "workers"),
    "workers 'many'": (lambda: Loader(Rows(), workers="many"), ValueError, "auto"),
    "workers 2.0": (lambda: Loader(Rows(), workers=2.0), ValueError, "workers"),
    "Threads(0)": (lambda: Threads(0), ValueError, "1 or more"),
    "Processes(-2)": (lambda: Processes(-2), ValueError, "1 or more"),
    "start 'quick'": (lambda: Processes(2, start="quick"), ValueError, "nursery"),
    "prefetch 0": (lambda: Loader(Rows(), prefetch=0), ValueError, "prefetch"),
    "collate 3": (lambda: Loader(Rows(), collate=3), TypeError, "collate"),
    "on_error 'ignore'": (lambda: Loader(Rows(), on_error="ignore"), ValueError, "skip"),
    "in_order 1": (lambda: Loader(Rows(), in_order=1), TypeError, "in_order"),
    "drop_last 1": (lambda: Loader(Rows(), drop_last=1), TypeError, "drop_last"),
    "to 'pandas'": (lambda: Loader(Rows(), to="pandas"), ValueError, "tinygrad"),
    "a device alone": (lambda: Loader(Rows(), device="cuda"), ValueError, "to="),
    "a word of torch": (lambda: Loader(Rows(), num_workers=2), TypeError, "num_workers: pass workers=2$"),
    "words of torch": (
        lambda: Loader(Rows(), pin_memory=True, collate_fn=list, prefetch_factor=4),
        TypeError,
        "pin_memory: leave it out.*collate_fn: pass collate=list.*prefetch_factor: pass prefetch=4",
    ),
    "a typing mistake": (lambda: Loader(Rows(), batchsize=3), TypeError, "batchsize: pass batch_size="),
    "an unknown word": (lambda: Loader(Rows(), zzz=2), TypeError, "zzz: it has dataset, batch_size"),
    "a word of torch for a stream": (lambda: stoker.stream(abs, [], num_workers=2), TypeError, "pass workers=2"),
    "a word that a stream has not": (lambda: stoker.stream(abs, [], sampler=[]), TypeError, "sampler: it has work"),
    "set_epoch(-1)": (lambda: Loader(Rows()).set_epoch(-1), ValueError, "number from 0 to"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments_are_answered_in_the_constructor(case):
    """Contract: bad arguments fail in the constructor, before any process starts, with what to write instead."""
    make, cls, words = BAD[case]
    with pytest.raises(cls, match=words):
        make()


OF_TORCH = """dataset batch_size shuffle sampler batch_sampler num_workers collate_fn pin_memory drop_last timeout
    worker_init_fn multiprocessing_context generator prefetch_factor persistent_workers pin_memory_device in_order"""


@pytest.mark.parametrize("name", OF_TORCH.split())
def test_each_word_of_torchs_loader_is_known_or_answered(name):
    if name in inspect.signature(Loader).parameters:
        return
    with pytest.raises(TypeError, match=rf"stoker.Loader has no argument {name}: (pass|leave it out)"):
        Loader(Rows(), **{name: None})


def test_the_signature_is_the_real_one():
    names = list(inspect.signature(Loader).parameters)
    assert names[:3] == ["dataset", "batch_size", "shuffle"]
    assert "kwargs" not in names
    assert list(inspect.signature(stoker.stream).parameters)[:2] == ["work", "items"]
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'dataset'"):
        Loader()


def of_library(module, name, base=object):
    """A class as a library that need not be installed has it."""
    return type(name, (base,), {"__module__": module, "__getitem__": list.__getitem__, "__len__": lambda self: 3})


@pytest.mark.parametrize(
    ("module", "name", "words"),
    [
        ("pandas.core.frame", "DataFrame", r"frame\[name\].to_numpy\(\) for name in frame.columns"),
        ("pandas.core.series", "Series", r"series.to_numpy\(\)"),
        ("polars.dataframe.frame", "DataFrame", r"frame\[name\].to_numpy\(\) for name in frame.columns"),
        ("pyarrow.lib", "Table", r"table\[name\].to_numpy\(\) for name in table.column_names"),
        ("h5py._hl.group", "Group", r"file\[name\]\[:\]"),
    ],
)
def test_a_table_of_another_library_is_answered_with_the_line_to_write(module, name, words):
    cls = of_library(module, name)
    for table in (cls(), of_library("geopandas", "GeoDataFrame", cls)()):
        with pytest.raises(TypeError, match=words):
            Loader(table)
        with Loader(lambda table=table: table) as loader, pytest.raises(TypeError, match=words):
            len(loader)
        with pytest.raises(TypeError, match="a tuple of 2 arrays"):
            Loader((table, np.ones(3)))


def test_the_lines_to_write_work():
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({"x": [1, 2, 3], "s": ["a", "b", "c"]})
    for make in (lambda: Loader(table), lambda: Loader(table.to_batches()[0]), lambda: Loader(table["x"])):
        with pytest.raises(TypeError, match=r"has no samples by number\. Pass"):
            make()
    with Loader({name: table[name].to_numpy() for name in table.column_names}, 2) as loader:
        first = next(iter(loader))
    assert (first["x"].tolist(), first["s"]) == ([1, 2], ["a", "b"])


def test_tuples_and_lists_of_samples_are_samples():
    for dataset in ([np.ones(2), np.ones(2)], ({"x": 1}, {"x": 2}), (1, 2), ((np.ones(2), 0), (np.ones(2), 1)), b"ab"):
        with Loader(dataset, 2) as loader:
            assert len(list(loader)) == 1
    with Loader({0: "a", 1: "b"}, 2) as loader:
        assert list(loader) == [["a", "b"]]


def test_numpy_integers_are_integers():
    with Loader(Rows(10), np.int64(4), seed=np.int32(3), shuffle=np.int64(5)) as loader:
        assert len(loader) == 3


def test_auto_workers_and_auto_shards(monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with Loader(Rows(8), 2, workers="auto", shard="auto") as loader:
        assert [batch[:, 0].tolist() for batch in loader] == [[2, 3], [6, 7]]
    monkeypatch.setenv("RANK", "one")
    with pytest.raises(ValueError, match="RANK='one'"):
        Loader(Rows(8), shard="auto")


def test_pad_is_public():
    assert stoker.pad([np.ones(1), np.ones(2)]).tolist() == [[1, 0], [1, 1]]
