"""Making the dataset again: by the name that the quarantine file has, or by the one that the user gives.

A name is ``MODULE:NAME`` or ``PATH.py:NAME``. What it stands for is taken as ``Loader`` takes its dataset: an object
with ``__getitem__`` as it is; a class, function or partial is called without arguments.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from stoker.cli.frames import story
from stoker.cli.quarantine import CannotReplay, QuarantinedSample
from stoker.sources import Indexed, IndexedSource

_FORMS = "MODULE:NAME, or PATH.py:NAME"


def datasets(records: Sequence[QuarantinedSample], given: str | None, file: str) -> dict[str, Indexed]:
    """The open dataset of each ``dataset_key``. ``given``: stands for the one that the file cannot tell how to make.

    Raises:
        CannotReplay: One of them is not known, or cannot be made.
    """
    references = {record.dataset_key: record.dataset for record in records}
    unknown = [key for key, one in references.items() if "make" not in one or one.get("redacted")]
    if given is None and unknown:
        raise CannotReplay(_what_to_pass(references[unknown[0]], file))
    meant = unknown if len(references) > 1 else list(references)
    if given is not None and len(meant) != 1:
        raise CannotReplay(
            f"{file} has samples of {len(references)} datasets ({', '.join(map(_name, references.values()))}), and "
            f"it is not clear which one --dataset stands for. Give each Loader a file of its own: quarantine=..."
        )
    return {
        key: _recorded(reference) if given is None or key not in meant else _open(found(given), given)
        for key, reference in references.items()
    }


def found(name: str, option: str = "--dataset ") -> Any:
    """What ``MODULE:NAME`` or ``PATH.py:NAME`` stands for. ``option``: what the user passes it as, for messages."""
    where, _, attribute = name.rpartition(":")
    if not where or not attribute:
        raise CannotReplay(f"{name!r} is no name of a dataset: pass {_FORMS}")
    if where.endswith(".py") and not os.path.isfile(where):
        raise CannotReplay(f"there is no file {where} to get the dataset from")
    module = _imported(where, attribute, option)
    try:
        return functools.reduce(getattr, attribute.split("."), module)
    except AttributeError as error:
        raise CannotReplay(f"{where} has no {attribute}: pass {option}{_FORMS}") from error


def _imported(where: str, attribute: str, option: str) -> Any:
    try:
        return _module_of_file(where) if where.endswith(".py") else importlib.import_module(where)
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and f"{where}.".startswith(f"{error.name}."):
            raise CannotReplay(
                f"there is no module {error.name} to get the dataset {where}:{attribute} from. Run this in the folder "
                f"that has it, set PYTHONPATH, or pass {option}PATH.py:{attribute}"
            ) from error
        raise CannotReplay(f"importing {where} failed:\n{story(error)}") from error


def _recorded(reference: dict[str, Any]) -> Indexed:
    name = reference["make"]
    maker = found(name)
    if not callable(maker):
        raise CannotReplay(f"{name} can no longer be called: pass --dataset {_FORMS}")
    return _open(functools.partial(maker, *reference["args"], **reference["kwargs"]), name)


def _open(dataset: Any, name: str) -> Indexed:
    try:
        return IndexedSource.of(dataset).open()
    except (Exception, SystemExit) as error:
        raise CannotReplay(f"the dataset {name} cannot be made:\n{story(error)}") from error


def _module_of_file(path: str) -> ModuleType:
    """Imports a file as a module of its name, with its folder on ``sys.path``, as ``python PATH`` would have it."""
    folder, file = os.path.split(os.path.abspath(path))
    name = file.removesuffix(".py")
    if name in sys.modules:  # another one
        name = f"replayed_{name}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, folder)
    sys.modules[name] = module  # before it runs, as an import has it: dataclasses look for their own module
    spec.loader.exec_module(module)
    return module


def _name(reference: dict[str, Any]) -> str:
    name: str = reference.get("make") or reference["type"]
    return name


def _what_to_pass(reference: dict[str, Any], file: str) -> str:
    name, redacted = _name(reference), reference.get("redacted")
    module, _, attribute = name.partition(":")
    if redacted:
        return (
            f"the dataset is made by {name}, and arguments of it were redacted when {file} was written, as they look "
            f"like secrets or have the names of some: {', '.join(redacted)}. Write a function that takes no argument, "
            f"reads these from where you keep secrets, and returns the dataset; and pass it:\n"
            f"  stoker replay {file} --dataset MODULE:FUNCTION\n"
            f"(PATH.py:FUNCTION will do, too)"
        )
    if module == "__main__":
        return (
            f"the dataset is {attribute}, of a script that was run. To import a script is to run it, so that is not "
            f"done unless you say so:\n"
            f"  stoker replay {file} --dataset SCRIPT.py:NAME\n"
            f"where NAME is the dataset, or a class, function or partial that makes it without arguments. What the "
            f'script is to do only as a script belongs under if __name__ == "__main__"'
        )
    return (
        f"the dataset is known as {name} only, which does not tell how to make it again. Run\n"
        f"  stoker replay {file} --dataset MODULE:NAME\n"
        f"where NAME is the dataset, or a class, function or partial that makes it without arguments (PATH.py:NAME "
        f"will do, too)"
    )
