"""dataset_server's arguments and settings: what is wrong is an error of the constructor that says what to write."""

from __future__ import annotations

import inspect
import math
import subprocess
import sys
import threading

import numpy as np
import pytest

from stoker import Cache, Rotation, ShippingError
from stoker.compat.dataset_server import DataLoader
from stoker.compat.dataset_server.settings import cache_of, rotation_of
from tests.compat.served import Numbers, Unmakeable, make


class Shapeless:
    def __len__(self) -> int:
        return 3


def test_the_defaults_are_those_of_its_document():
    parameters = list(inspect.signature(DataLoader).parameters.values())
    assert [parameter.name for parameter in parameters] == [
        "dataset_class", "dataset_params", "batch_size", "nb_worker", "max_minibatch_length", "max_queue_size",
        "prefetch_time", "shuffle", "device", "pin_memory", "gpu_indices", "nearby_shuffle", "cache_setting",
        "rotation_setting", "use_threading", "collate_fn",
    ]  # fmt: skip
    assert [parameter.default for parameter in parameters[4:]] == [
        None, 20, None, False, None, False, None, 0, None, None, False, None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "least"),
    [("batch_size", 1), ("nb_worker", 1), ("max_minibatch_length", 1), ("max_queue_size", 1), ("nearby_shuffle", 0)],
)
def test_counts_are_whole_numbers(name, least):
    for wrong, kind in ((least - 1, ValueError), (2.5, TypeError), ("4", TypeError), (True, TypeError)):
        with pytest.raises(kind, match=f"{name}={wrong!r}: pass a whole number of {least} or more"):
            make(**{name: wrong})
    make(**{name: np.int64(1000 if name == "max_minibatch_length" else 1)}).close()


@pytest.mark.parametrize("name", ["shuffle", "pin_memory", "use_threading"])
def test_flags_are_true_or_false(name):
    with pytest.raises(TypeError, match=f"{name}=1: pass True or False"):
        make(**{name: 1})


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"dataset_class": None}, TypeError, "dataset_class=None cannot be called"),
        ({"dataset_class": Numbers(3)}, TypeError, "cannot be called: pass a function or a class"),
        ({"dataset_class": Shapeless}, TypeError, "Shapeless has no __getitem__"),
        ({"dataset_class": lambda n: Shapeless()}, TypeError, "Shapeless has no __getitem__"),
        ({"dataset_class": Unmakeable}, OSError, "no such disk"),
        ({"params": {"m": 3}}, TypeError, "unexpected keyword argument 'm'"),
        ({"params": {3: "m"}}, TypeError, "pass a dict of dataset_class's keyword arguments"),
        ({"collate_fn": "stack"}, TypeError, "collate_fn='stack' cannot be called"),
        ({"prefetch_time": -1}, ValueError, "prefetch_time=-1: pass a number of seconds of 0 or more"),
        ({"prefetch_time": math.inf}, ValueError, "prefetch_time=inf"),
        ({"prefetch_time": math.nan}, ValueError, "prefetch_time=nan"),
        ({"prefetch_time": "5"}, TypeError, "prefetch_time='5': pass a number of seconds"),
        ({"prefetch_time": True}, TypeError, "prefetch_time=True"),
        ({"gpu_indices": [0]}, ValueError, r"gpu_indices=\[0\] has 1 and nb_worker=2: pass one for each worker"),
        ({"gpu_indices": [0, 1, 2]}, ValueError, "has 3 and nb_worker=2"),
        ({"gpu_indices": []}, ValueError, "has 0 and nb_worker=2"),
        ({"gpu_indices": [0, -1]}, ValueError, "index=-1: pass a whole number of 0 or more"),
        ({"gpu_indices": [0, "1"]}, TypeError, "index='1': pass a whole number of 0 or more"),
        ({"gpu_indices": "01"}, TypeError, "gpu_indices='01': pass a list"),
        ({"gpu_indices": 1}, TypeError, "gpu_indices=1: pass a list with the number of a GPU for each worker"),
        (
            {
                "cache_setting": {"prefix": "a", "update_frequency": 2},
                "rotation_setting": {"medium": "memory", "rotation": 2},
            },
            ValueError,
            "cache_setting and rotation_setting do not go together",
        ),
    ],
)
def test_a_wrong_argument_says_what_to_write(options, kind, words):
    with pytest.raises(kind, match=words):
        make(nb_worker=2, **options)


def test_dataset_params_are_a_dict():
    with pytest.raises(TypeError, match=r"dataset_params=\[3\]: pass a dict"):
        DataLoader(Numbers, [3], 2, 1)


@pytest.mark.parametrize("device", ["cud", "cuda:99", 99, 3.5, "nowhere"])
def test_a_device_that_is_not_there_is_said_early(device):
    pytest.importorskip("torch")
    with pytest.raises(ValueError, match=f"device={device!r}: torch says .*Pass a device that is there"):
        make(device=device)


@pytest.mark.parametrize("options", [{"device": "cpu"}, {"pin_memory": True}], ids=str)
def test_without_torch_device_and_pin_memory_say_what_to_install(options, monkeypatch):
    monkeypatch.setattr("stoker.compat.dataset_server.options.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"need torch, which is not installed: pip install stoker\[torch\]"):
        make(**options)


def test_torch_is_not_imported_unless_they_ask_for_it():
    script = (
        "import sys, numpy as np\n"
        "from stoker.compat.dataset_server import DataLoader\n"
        "for options in ({}, {'use_threading': True, 'shuffle': True}):\n"
        "    with DataLoader(np.arange, {'stop': 9}, 4, 1, **options) as loader:\n"
        "        assert len(list(loader)) == 3\n"
        "assert not {'torch', 'jax', 'tensorflow'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_what_cannot_travel_is_said_early():
    lock = threading.Lock()
    with pytest.raises(ShippingError, match="pickle"):
        make(collate_fn=lambda samples: (lock, samples)[1])


# cache_setting


@pytest.mark.parametrize(
    ("setting", "kind", "words"),
    [
        (3, TypeError, "cache_setting=3: pass a dict with 'prefix' and 'update_frequency', or None"),
        ({"update_frequency": 3}, ValueError, "has no 'prefix': pass 'prefix' and 'update_frequency'"),
        ({"prefix": "x"}, ValueError, "cache_setting={'prefix': 'x'} has no 'update_frequency'"),
        (
            {"prefix": "x", "update_freq": 3, "update_frequency": 3},
            ValueError,
            "unknown key 'update_freq': the nearest",
        ),
        ({"prefix": "x", "update_frequency": 3, 7: 3}, ValueError, "unknown key 7"),
        ({"prefix": 3, "update_frequency": 3}, TypeError, "prefix=3: pass how the files' names begin"),
        ({"prefix": "", "update_frequency": 3}, ValueError, "prefix=''"),
        ({"prefix": "/no/such/x", "update_frequency": 3}, ValueError, "there is no folder '/no/such'. Make it"),
        ({"prefix": "no/x", "update_frequency": 3}, ValueError, "there is no folder 'no'"),
        ({"prefix": "x", "update_frequency": 1}, ValueError, "update_frequency=1: pass a whole number of 2 or more"),
        ({"prefix": "x", "update_frequency": -3}, ValueError, 'update_frequency=-3: .* float\\("inf"\\) for never'),
        ({"prefix": "x", "update_frequency": 2.5}, TypeError, "update_frequency=2.5"),
        ({"prefix": "x", "update_frequency": math.nan}, TypeError, "update_frequency=nan"),
        ({"prefix": "x", "update_frequency": "inf"}, TypeError, "update_frequency='inf'"),
        ({"prefix": "x", "update_frequency": None}, TypeError, "update_frequency=None"),
        ({"prefix": "x", "update_frequency": True}, TypeError, "update_frequency=True"),
        ({"prefix": "x", "update_frequency": 3, "codec": "json"}, ValueError, "codec='json'.*'safe', 'pickle'"),
    ],
)
def test_a_wrong_cache_setting_says_what_to_write(setting, kind, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(kind, match=words):
        make(cache_setting=setting)
    assert list(tmp_path.iterdir()) == []


def test_the_cache_is_in_a_folder_that_begins_with_prefix(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for prefix in (str(tmp_path / "train"), tmp_path / "train", "train"):
        for frequency in (3, np.int64(3)):
            wanted = Cache(tmp_path / "train_cache", refresh_every=3)
            assert cache_of({"prefix": prefix, "update_frequency": frequency}) == wanted
    assert cache_of(None) is None


@pytest.mark.parametrize("never", [float("inf"), np.inf, np.float32("inf")])
def test_inf_is_never(never, tmp_path):
    assert cache_of({"prefix": f"{tmp_path}/", "update_frequency": never}) == Cache(tmp_path / "_cache")


# rotation_setting


@pytest.mark.parametrize(
    ("setting", "kind", "words"),
    [
        ("disk", TypeError, "rotation_setting='disk': pass a dict with 'medium' and 'rotation'"),
        ({"rotation": 3}, ValueError, "rotation_setting={'rotation': 3} has no 'medium'"),
        ({"medium": "memory"}, ValueError, "has no 'rotation'"),
        ({"medium": "memory", "rotation": 3, "sizes": 3}, ValueError, "unknown key 'sizes': the nearest .* 'size'"),
        ({"medium": "tape", "rotation": 3}, ValueError, "medium='tape': pass one of 'memory', 'disk'"),
        ({"medium": None, "rotation": 3}, ValueError, "medium=None"),
        ({"medium": "memory", "rotation": 1}, ValueError, "rotation=1: pass a whole number of 2 or more, or leave"),
        ({"medium": "memory", "rotation": 2.5}, TypeError, "rotation=2.5"),
        ({"medium": "memory", "rotation": None}, TypeError, "rotation=None"),
        ({"medium": "memory", "rotation": 2, "size": 0}, ValueError, "size=0: pass a whole number of 1 or more"),
        ({"medium": "memory", "rotation": 2, "size": "9"}, TypeError, "size='9'"),
        ({"medium": "disk", "rotation": 2, "prefix": "x"}, ValueError, "has no 'size', which medium='disk' needs"),
        ({"medium": "disk", "rotation": 2, "size": 9}, ValueError, "has no 'prefix', which medium='disk' needs"),
        ({"medium": "disk", "rotation": 2}, ValueError, "has no 'size'"),
        ({"medium": "disk", "rotation": 2, "size": None, "prefix": "x"}, ValueError, "has no 'size'"),
        ({"medium": "disk", "rotation": 2, "size": 9, "prefix": "no/x"}, ValueError, "there is no folder 'no'"),
        ({"medium": "disk", "rotation": 2, "size": 9, "prefix": 3}, TypeError, "rotation_setting: prefix=3"),
    ],
)
def test_a_wrong_rotation_setting_says_what_to_write(setting, kind, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(kind, match=words):
        make(rotation_setting=setting)


def test_the_rotation_is_that_of_the_setting(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert rotation_of(None) is None
    assert rotation_of({"medium": "memory", "rotation": 3}) == Rotation(3)
    assert rotation_of({"medium": "memory", "rotation": 3, "size": 7, "prefix": "unused"}) == Rotation(3, size=7)
    for prefix in (tmp_path / "x", "x"):
        setting = {"medium": "disk", "rotation": 3, "size": 7, "prefix": prefix}
        assert rotation_of(setting) == Rotation(3, medium="disk", size=7, path=tmp_path)
