"""``stoker replay --step``: the batch that a loader has at a step, with the same samples and random numbers."""

from __future__ import annotations

import json
import random
import textwrap

import numpy as np
import pytest

import stoker
from tests.cli.running import run

MODULE = """
    import random
    import numpy as np

    class Noisy:
        def __init__(self, n=20):
            self.n = n

        def __len__(self):
            return self.n

        def __getitem__(self, index):
            if index == 13:
                raise ValueError("sample 13 is broken")
            return {"index": index, "noise": np.float64(random.random()), "name": f"n{index}"}

    noisy = Noisy()
    summed = lambda samples: (np.array([s["index"] for s in samples]).sum(), samples[0])
"""


class Noisy:
    def __len__(self):
        return 20

    def __getitem__(self, index):
        return {"index": index, "noise": np.float64(random.random()), "name": f"n{index}"}


@pytest.fixture
def module(tmp_path):
    (tmp_path / "noisy_data.py").write_text(textwrap.dedent(MODULE))
    return f"{tmp_path}/noisy_data.py"


def step_without(index, loader):
    return next(step for step in range(len(loader)) if index not in loader.indices(2, step))


def test_it_is_the_batch_of_the_training_with_a_state_or_with_options(module, tmp_path):
    with stoker.Loader(Noisy(), 4, shuffle=True, seed=7, shard=(1, 2)) as loader:
        step = step_without(13, loader)
        loader.seek(2, step)
        batch, state = next(iter(loader)), loader.state_dict()
        indices = loader.indices(2, step)
    (tmp_path / "state.json").write_text(json.dumps(state))
    common = "--dataset", f"{module}:Noisy", "--epoch", 2, "--step", step, "--shard", "1/2", "--json"
    told = json.loads(run("replay", tmp_path / "state.json", *common).stdout)
    assert told == json.loads(run("replay", *common, "--batch-size", 4, "--shuffle", "--seed", 7).stdout)
    assert told["indices"] == indices == batch["index"].tolist()
    arrays = {array["name"]: array for array in told["arrays"]}
    assert arrays["batch['noise']"]["max"] == batch["noise"].max()
    assert arrays["batch['index']"]["shape"] == [4]
    assert arrays["batch['index']"]["not finite"] == 0


def test_without_json_it_is_told_in_lines(module):
    done = run("replay", "--dataset", f"{module}:noisy", "--batch-size", 3, "--step", 1)
    assert done.returncode == 0
    first, second = done.stdout.splitlines()[:2]
    assert first == "step 1 of epoch 0: samples 3, 4, 5"
    assert second == "  batch['index']  shape [3]  dtype int64  min 3.0  max 5.0  mean 4.0  not finite 0"


def test_the_loaders_own_collate_is_used(module):
    options = "--dataset", f"{module}:noisy", "--batch-size", 3, "--step", 1, "--collate", f"{module}:summed", "--json"
    assert json.loads(run("replay", *options).stdout)["arrays"][0]["max"] == 12


def test_a_sample_that_fails_is_shown_and_the_exit_code_says_so(module):
    done = run("replay", "--dataset", f"{module}:noisy", "--batch-size", 4, "--step", 3)
    assert done.returncode == 1
    assert "ValueError: sample 13 is broken" in done.stdout
    assert "dataset[13] raised it" in done.stdout


def test_what_cannot_be_done_is_said_so(module, tmp_path):
    dataset = "--dataset", f"{module}:noisy"
    (tmp_path / "wrong.json").write_text("{}")
    (tmp_path / "shards.json").write_text(json.dumps(stoker.Loader(Noisy(), shard=(0, 4)).state_dict()))
    (tmp_path / "longer.json").write_text(json.dumps(stoker.Loader(range(21)).state_dict()))
    rotating = stoker.Loader(Noisy(), rotation=stoker.Rotation(2)).state_dict()
    (tmp_path / "rotating.json").write_text(json.dumps(rotating))
    for arguments, message in [
        ((), "pass a quarantine file, or --step"),
        (("--step", 1), "--step needs a dataset"),
        ((*dataset, "--step", 9), "has no step 9: it has 1 batches"),
        ((*dataset, "--step", -1), "pass a whole number"),
        ((*dataset, "--step", 0, "--batch-size", 0), "batch_size is 0"),
        ((tmp_path / "wrong.json", *dataset, "--step", 0), "no state of a Loader"),
        ((tmp_path / "shards.json", *dataset, "--step", 0), "pass --shard I/4"),
        ((tmp_path / "longer.json", *dataset, "--step", 0), "saved with length=21"),
        ((tmp_path / "rotating.json", *dataset, "--step", 0), "rotating samples"),
    ]:
        done = run("replay", *arguments)
        assert (done.returncode, message in done.stderr) == (2, True), done.stderr
