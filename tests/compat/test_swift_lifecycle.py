"""Before the start, after the close, and when something goes wrong in between."""

from __future__ import annotations

import gc
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import stoker
from stoker import ClosedError
from stoker.compat.swift_loader import SwiftLoader
from tests.compat.numbered import Broken, Unmakeable, make, read


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
        with pytest.raises(ValueError, match=f"consumer_index={index}: with nb_consumer=2, pass a number from 0 to 1"):
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


def test_importing_the_front_imports_no_framework():
    script = "import sys, stoker.compat.swift_loader; assert not {'torch', 'jax', 'tensorflow'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_the_front_is_built_on_the_public_api_alone():
    for file in (Path(stoker.__file__).parent / "compat").glob("*.py"):
        imports = re.findall(r"^ *(?:from|import) (stoker[.\w]*)", file.read_text(), re.MULTILINE)
        assert [name for name in imports if name != "stoker" and not name.startswith("stoker.compat")] == [], file.name
        used = set(re.findall(r"(?<![.\w`])stoker\.(\w+)", file.read_text())) - {"compat"}
        assert used <= set(stoker.__all__), file.name
