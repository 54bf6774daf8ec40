"""The public face: what is promised is there, what is there is promised, and importing it costs nothing."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import ForwardRef

import pytest

import stoker
import stoker.options
import stoker.testing

ROOT = Path(__file__).parents[1]
FRAMEWORKS = ["torch", "jax", "tensorflow", "tinygrad", "ray", "sklearn", "scipy", "pandas"]


def in_a_fresh_process(script: str) -> None:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_each_promised_name_is_there():
    assert [name for name in stoker.__all__ if not hasattr(stoker, name)] == []


def test_no_name_is_promised_twice():
    assert len(stoker.__all__) == len(set(stoker.__all__))


def test_each_public_name_is_promised():
    public = {
        name
        for name, value in vars(stoker).items()
        if not name.startswith("_") and not isinstance(value, ModuleType) and name != "annotations"
    }
    assert public <= set(stoker.__all__)


def test_each_promised_name_has_a_heading_in_the_docs():
    headings = re.findall(r"^### `?([\w.]+)", (ROOT / "docs" / "api.md").read_text(), flags=re.MULTILINE)
    assert [name for name in stoker.__all__ if not name.startswith("__") and name not in headings] == []


def test_the_test_kit_promises_what_its_page_describes():
    headings = re.findall(r"^### ([\w.]+)", (ROOT / "docs" / "testing.md").read_text(), flags=re.MULTILINE)
    assert sorted(headings) == sorted(stoker.testing.__all__)
    assert [name for name in stoker.testing.__all__ if not getattr(stoker.testing, name).__doc__] == []


def test_each_promised_class_and_function_says_what_it_is_for():
    objects = [getattr(stoker, name) for name in stoker.__all__]
    silent = [o.__name__ for o in objects if (inspect.isclass(o) or inspect.isfunction(o)) and not o.__doc__]
    assert silent == []


def test_importing_stoker_imports_no_framework():
    in_a_fresh_process(
        "import sys, stoker\n"
        f"found = [name for name in {FRAMEWORKS!r} if name in sys.modules]\n"
        "assert not found, found\n"
    )


def test_importing_stoker_starts_no_thread_and_no_process():
    in_a_fresh_process(
        "import threading, psutil, stoker\n"
        "assert threading.active_count() == 1, threading.enumerate()\n"
        "assert not psutil.Process().children(), psutil.Process().children()\n"
    )


def test_options_that_loaders_and_streams_share_are_the_same_in_both():
    """The signatures list them twice, so that editors show names and defaults: docs/design/options.md."""
    loader, stream = inspect.signature(stoker.Loader).parameters, inspect.signature(stoker.stream).parameters
    shared = [name for name in stream if name in loader]
    assert len(shared) == 18
    assert {name: stream[name].default for name in shared} == {name: loader[name].default for name in shared}
    annotations = [{name: each[name].annotation for name in shared} for each in (loader, stream)]
    differing = {name for name in shared if annotations[0][name] != annotations[1][name]}
    # No share of unknown length; a stream may leave generators alone.
    assert differing == {"max_errors", "seed"}


@pytest.mark.parametrize(
    ("face", "kinds"),
    [
        (stoker.Loader, ["AsCollated", "Through", "InFramework", "OnDevice"]),
        (stoker.stream, ["StreamOptions"]),
    ],
)
def test_type_checkers_are_told_the_options_that_there_are(face, kinds):
    """Overloads name them a second time: docs/design/types.md."""
    real = {name: each.annotation for name, each in inspect.signature(face).parameters.items()}
    told = [{k: v.__forward_arg__ for k, v in options_of(kind).items()} for kind in kinds]
    flat = {"dataset", "batch_size", "collate", "to", "to_device", "work", "items"}
    assert all({name: each[name] for name in each.keys() - flat} == without(flat, real) for each in told)


def options_of(kind: str) -> dict[str, ForwardRef]:
    """Of a TypedDict and those it inherits from."""
    return getattr(stoker.options, kind).__annotations__


def without(names: set[str], annotations: dict[str, str]) -> dict[str, str]:
    return {name: annotations[name] for name in annotations.keys() - names}


@pytest.mark.parametrize("face", [stoker.Loader, stoker.stream])
def test_help_describes_each_argument_in_the_order_of_the_signature(face):
    described = re.findall(r"^ {4}(\w+): ", inspect.getdoc(face).partition("Raises:")[0], flags=re.MULTILINE)
    assert described == list(inspect.signature(face).parameters)
