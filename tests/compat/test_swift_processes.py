"""A SwiftLoader is made once, handed unstarted to real consumer processes, and started in each."""

from __future__ import annotations

import json
import multiprocessing
import pickle
import subprocess
import sys
from collections import Counter
from itertools import chain

import pytest

from tests.compat.numbered import consume, make, numbered, read, total

CONSUMERS = 3
SCRIPT = """
import multiprocessing, sys
import numpy as np
from stoker.compat.swift_loader import SwiftLoader

class Squares:
    def __init__(self, n):
        self.n = n
    def __len__(self):
        return self.n
    def __getitem__(self, index):
        return index ** 2

def collate(samples):
    return np.array(samples)

def train(index, loader):
    loader.start(index)
    for epoch in range(2):
        for batch in loader:
            print(batch.tolist(), flush=True)
    loader.close()

if __name__ == "__main__":
    loader = SwiftLoader(Squares, {"n": 5}, 2, 2, 2, shuffle=False, collate_fn=collate)
    for index in range(2):
        process = multiprocessing.get_context(sys.argv[1]).Process(target=train, args=(index, loader))
        process.start()
        process.join()
"""


def in_processes(method: str, loader, epochs: int, *, daemon: bool) -> list[dict]:
    context = multiprocessing.get_context(method)
    pipes = [context.Pipe(duplex=False) for _ in range(CONSUMERS)]
    processes = [
        context.Process(target=consume, args=(index, loader, epochs, pipes[index][1]), daemon=daemon)
        for index in range(CONSUMERS)
    ]
    for process in processes:
        process.start()
    found = [here.recv() for here, _ in pipes]
    for process in processes:
        process.join()
        process.close()
    for end in chain(*pipes):
        end.close()
    return found


@pytest.mark.parametrize("daemon", [False, True])
@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*fork")
def test_consumers_have_their_blocks_in_order(method, daemon):
    found = in_processes(method, make(20, 4, consumers=CONSUMERS, workers=2), 2, daemon=daemon)
    expected = [[[0, 1, 2, 3], [4, 5, 6]], [[7, 8, 9, 10], [11, 12, 13]], [[14, 15, 16, 17], [18, 19]]]
    assert found == [{"length": 2, "epochs": [batches, batches]} for batches in expected]


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*fork")
def test_shuffled_consumers_share_a_seed_that_nobody_gave(method):
    loader = make(100, 8, consumers=CONSUMERS, workers=2, shuffle=True)
    found = in_processes(method, loader, 2, daemon=False)
    for epoch in range(2):
        assert Counter(chain(*chain(*(one["epochs"][epoch] for one in found)))) == Counter(range(100))
    with loader:
        loader.start(0)  # here, too, nothing has been started yet
        assert read(loader, 2) == found[0]["epochs"]


def test_torch_multiprocessing_spawn(tmp_path):
    torch_multiprocessing = pytest.importorskip("torch.multiprocessing")
    loader = make(20, 4, consumers=2, workers=1)
    torch_multiprocessing.spawn(consume, args=(loader, 1, str(tmp_path)), nprocs=2)
    found = [json.loads((tmp_path / f"{index}.json").read_text())["epochs"] for index in (0, 1)]
    assert found == [[[[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]], [[[10, 11, 12, 13], [14, 15, 16, 17], [18, 19]]]]


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_script_whose_dataset_is_its_own(method, tmp_path):
    """Its classes are ``__main__``'s in the parent and ``__mp_main__``'s in a spawned consumer."""
    (tmp_path / "train.py").write_text(SCRIPT)
    command = [sys.executable, str(tmp_path / "train.py"), method]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert ran.stderr == ""
    assert ran.stdout.splitlines() == ["[0, 1]", "[4]"] * 2 + ["[9, 16]"] * 2


@pytest.mark.parametrize("options", [{}, {"shuffle": True}, {"logger": "log", "benchmark_file": "figures"}])
def test_an_unstarted_loader_pickles_and_a_started_one_says_why_not(options, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    loader = make(consumers=2, **options)
    with pickle.loads(pickle.dumps(loader)) as copy, loader:
        copy.start(1)
        loader.start(1)
        assert read(copy) == read(loader)
        with pytest.raises(TypeError, match="started"):
            pickle.dumps(copy)


def test_functions_of_the_users_travel_with_it():
    with pickle.loads(pickle.dumps(make(5, 3, collate_fn=total))) as loader:
        loader.start(0)
        assert [batch["sum"] for batch in loader] == [3, 7]
    encoding = {"collate_fn": numbered, "batch_encoder": pickle.dumps, "batch_decoder": pickle.loads}
    with pickle.loads(pickle.dumps(make(5, 3, **encoding))) as loader:
        loader.start(0)
        assert list(loader) == [{"numbers": [0, 1, 2]}, {"numbers": [3, 4]}]
