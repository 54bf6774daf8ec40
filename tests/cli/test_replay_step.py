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
    import stoker

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
    buckets = stoker.Buckets(np.arange(20) + 1, max_tokens=40)

    def mix():
        return stoker.Mix({"web": np.arange(100), "[code]": np.arange(100, 130)}, [0.8, 0.2], ends="never")

    mixed = mix()
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
    assert arrays["batch['index']"]["nonfinite"] == 0


def test_without_json_it_is_told_in_lines(module):
    done = run("replay", "--dataset", f"{module}:noisy", "--batch-size", 3, "--step", 1)
    assert done.returncode == 0
    first, second = done.stdout.splitlines()[:2]
    assert first == "step 1 of epoch 0: samples 3, 4, 5"
    assert second == "  batch['index']  shape [3]  dtype int64  min 3.0  max 5.0  mean 4.0  nonfinite 0"


def test_the_loaders_own_collate_is_used(module):
    options = "--dataset", f"{module}:noisy", "--batch-size", 3, "--step", 1, "--collate", f"{module}:summed", "--json"
    assert json.loads(run("replay", *options).stdout)["arrays"][0]["max"] == 12


@pytest.mark.parametrize("name", ["mix", "mixed"])
def test_of_a_mixture_it_has_the_weights_that_were_set_and_says_which_source(name, module, tmp_path):
    sources = {"web": np.arange(100), "[code]": np.arange(100, 130)}
    with stoker.Loader(stoker.Mix(sources, [0.8, 0.2], ends="never"), 8, shuffle=True, seed=3) as loader:
        loader.set_weights([0.1, 0.9], after=4)
        batch = [next(iter(loader)) for _ in range(7)][5]
        (tmp_path / "state.json").write_text(json.dumps(loader.state_dict()))
    options = tmp_path / "state.json", "--dataset", f"{module}:{name}", "--step", 5
    told = json.loads(run("replay", *options, "--json").stdout)
    assert told["indices"] == batch.tolist()
    assert [own + 100 * (source == "[code]") for source, own in told["sources"]] == batch.tolist()
    source, own = told["sources"][0]
    assert run("replay", *options).stdout.startswith(f"step 5 of epoch 0: samples {source}[{own}], ")


def test_an_order_of_ones_own_is_named(module, tmp_path):
    buckets = stoker.Buckets(np.arange(20) + 1, max_tokens=40)
    with stoker.Loader(Noisy(), shuffle=True, order=buckets) as loader:
        step = next(step for step in range(len(loader)) if 13 not in loader.indices(0, step))
        indices = loader.indices(0, step)
        (tmp_path / "state.json").write_text(json.dumps(loader.state_dict()))
    options = tmp_path / "state.json", "--dataset", f"{module}:noisy", "--step", step, "--json"
    assert json.loads(run("replay", *options, "--order", f"{module}:buckets").stdout)["indices"] == indices
    assert "pass --order MODULE:NAME" in run("replay", *options).stderr


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
