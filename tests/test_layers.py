"""Imports flow one way: a package imports only what stands above it in the list of the house."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "stoker"

# Top to bottom. FACE is stoker/__init__.py, the public API: it shows what is above it to what is below it.
FACE = "stoker"
LAYERS = [
    *(
        "shadows",
        "errors",
        "systems",
        "version",
        "counts",
        "interrupts",
        "redaction",
        "private_files",
        "plan",
        "collation",
        "memory",
        "sources",
        "splitting",
        "stores",
        "workers",
        "engine",
        "agenda",
        "observe",
    ),
    *("bridges", "batches", "shards", "arguments", "attributes", "orders", "options"),
    *(
        "settings",
        "assembly",
        "feed",
        "engine_owner",
        "intake",
        "turns",
        "steps",
        "mixing",
        "display",
        "showing",
        "session",
        "front",
    ),
    *("streams", "surveys", "chunk_session", "packed_session", "indexed_session"),
    *("loader_session", "iteration", "own_shard", "loader", FACE),
    *("torch", "compat", "export", "doctor", "cli", "testing", "__main__"),
]
VAGUE_NAMES = {"util", "utils", "common", "helper", "helpers", "misc"}

# Within a layer, too, from top to bottom: its packages, and "" for the files that are in none.
PARTS = {
    "sources": ["files", ""],
    "workers": ["", "processes", "auto", "ray"],
    "agenda": ["", "chunks", "packed"],
    "observe": ["", "page"],
}
OPENERS = {"stoker.workers.options", "stoker.workers.ray_options"}  # which import a kind of workers when it is used

# Fronts use the public face alone, but for these modules, which users do not need.
FRONTS: dict[str, set[str]] = {
    "torch": set(),
    "compat": set(),
    "export": set(),
    "doctor": set(),
    "testing": {"counts", "systems"},
    "cli": {
        *("doctor", "interrupts", "redaction", "splitting.manifest", "sources", "stores.cache_inventory"),
        *("systems", "workers.failure", "workers.randomness"),
        *("observe.page", "observe.page.gathering", "observe.page.registry", "observe.page.server"),
    },
}
BACKENDS = {"Inline", "Threads", "Processes", "Auto", "Ray"}

FILES = sorted(SOURCE.rglob("*.py"))


def module_name(path: Path) -> tuple[str, bool]:
    """The dotted name of a file's module, and whether it is a package."""
    parts = ["stoker", *path.relative_to(SOURCE).with_suffix("").parts]
    is_package = parts[-1] == "__init__"
    return ".".join(parts[:-1] if is_package else parts), is_package


def imported_modules(code: str, module: str, is_package: bool) -> Iterator[tuple[int, str]]:
    """Line and dotted name of each import: at the top, in a function, or for the type checker only."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = module.split(".") if is_package else module.split(".")[:-1]
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{origin}.{alias.name}") for alias in node.names)


def layer(module: str) -> str | None:
    """The layer of a module, or None where it is not Stoker's. `from stoker import Loader` means the face."""
    parts = module.split(".")
    if parts[0] != "stoker":
        return None
    return parts[1] if len(parts) > 1 and parts[1] in LAYERS else FACE


def violations(code: str, module: str, is_package: bool = False) -> list[str]:
    """Imports of something that stands below the importing module."""
    own = layer(module)
    assert own is not None
    return [
        f"line {line}: {module} ({own}) imports {name} ({other}), which stands below it"
        for line, name in imported_modules(code, module, is_package)
        if (other := layer(name)) is not None and LAYERS.index(other) > LAYERS.index(own)
    ]


def reaches_behind_the_face(code: str, module: str, is_package: bool = False) -> list[str]:
    """Imports, by a front, of something of Stoker's that is neither public nor the front's own."""
    own = layer(module)
    assert own is not None
    return [
        f"line {line}: {module} imports {name}, which is not public"
        for line, name in imported_modules(code, module, is_package)
        if layer(name) not in (None, FACE, own) and not {name, name.rpartition(".")[0]} & reachable(own)
    ]


def reachable(front: str) -> set[str]:
    return {f"stoker.{name}" for name in FRONTS[front]}


def part(module: str) -> tuple[str, int] | None:
    """The layer of a module, and how far down its part of that layer is; None where a layer has no parts."""
    names = module.split(".")
    if len(names) < 2 or names[0] != "stoker" or names[1] not in PARTS:
        return None
    own = names[2] if len(names) > 2 else ""
    return names[1], PARTS[names[1]].index(own if own in PARTS[names[1]] else "")


def violations_within(code: str, module: str, is_package: bool = False) -> list[str]:
    """Imports of a part of the same layer that stands below the importing module's own."""
    own = part(module)
    return [
        f"line {line}: {module} imports {name}, which is in a part below it"
        for line, name in imported_modules(code, module, is_package)
        if own and (other := part(name)) and other[0] == own[0] and other[1] > own[1] and module not in OPENERS
    ]


def test_a_file_imports_only_what_stands_above_it():
    assert [found for path in FILES for found in violations(path.read_text(), *module_name(path))] == []


def test_within_a_layer_a_part_imports_only_those_above_it():
    assert [found for path in FILES for found in violations_within(path.read_text(), *module_name(path))] == []


def test_each_package_of_a_layer_with_parts_is_in_its_list():
    for name, parts in PARTS.items():
        packages = {path.parent.relative_to(SOURCE / name) for path in (SOURCE / name).rglob("__init__.py")}
        assert {package.parts[0] if package.parts else "" for package in packages} == set(parts)


def test_an_import_of_a_part_below_is_found():
    assert violations_within("from stoker.workers.ray import site", "stoker.workers.processes.backend")
    assert violations_within("def late():\n    from .page import Watch", "stoker.observe.meter")
    assert not violations_within("from stoker.workers.processes.records import pack", "stoker.workers.ray.actor")
    assert not violations_within("from stoker.workers.worker import Job", "stoker.workers.ray.actor")


def test_a_front_imports_only_the_public_face():
    fronts = [path for path in FILES if path.relative_to(SOURCE).parts[0] in FRONTS]
    assert fronts
    assert [found for path in fronts for found in reaches_behind_the_face(path.read_text(), *module_name(path))] == []


def test_an_import_behind_the_face_is_found():
    assert reaches_behind_the_face("from stoker.plan import Plan", "stoker.compat.pyloader.run")
    assert reaches_behind_the_face("def late():\n    from ...bridges import bridge", "stoker.compat.pyloader.run")
    assert not reaches_behind_the_face("import stoker\nfrom .work import Work", "stoker.compat.pyloader.run")
    assert reaches_behind_the_face("from stoker.sources.mix import Mix", "stoker.cli.replay")
    assert not reaches_behind_the_face("from stoker.sources import Indexed", "stoker.cli.replay")


def test_a_file_is_named_by_its_noun():
    names = {path: path.relative_to(SOURCE).with_suffix("").parts for path in FILES}
    vague = [path for path, parts in names.items() if {part.strip("_") for part in parts} & VAGUE_NAMES]
    assert not vague, "name the file by the one concept it holds"


def asks_which_backend(code: str) -> list[int]:
    """Lines that ask whether something is one of the kinds of workers."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("isinstance", "issubclass")
        and {name.id for name in ast.walk(node.args[-1]) if isinstance(name, ast.Name)} & BACKENDS
    ]


def test_nobody_but_their_own_file_asks_which_kind_of_workers_it_is():
    others = [path for path in FILES if path != SOURCE / "workers" / "options.py"]
    found = {str(path): lines for path in others if (lines := asks_which_backend(path.read_text()))}
    assert not found, "let the kinds say what they can do, as attributes in workers/options.py"


def test_a_question_for_the_kind_of_workers_is_found():
    assert asks_which_backend("x = 1\nif isinstance(workers, Threads | Inline):\n    pass") == [2]
    assert asks_which_backend("issubclass(cls, (int, Processes))") == [1]
    assert not asks_which_backend("isinstance(workers, int) and workers.is_inline")


def test_each_room_of_the_house_is_in_the_list():
    rooms = {path.relative_to(SOURCE).parts[0].removesuffix(".py") for path in FILES} - {"__init__"}
    assert rooms <= set(LAYERS), "put it where its imports allow, in this list and in docs/architecture.md"


@pytest.mark.parametrize(
    "code",
    [
        "import stoker.loader",
        "import numpy, stoker.engine.machine as m",
        "from stoker.engine import machine",
        "from stoker import engine",
        "from stoker import Loader",
        "import stoker",
        "from ..engine import machine",
        "from .. import engine",
        "from .. import Loader",
        "def late():\n    from stoker.engine import machine",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import stoker.engine",
    ],
)
def test_each_kind_of_upward_import_is_found(code: str):
    assert violations(code, "stoker.plan.batches")
    assert violations(code, "stoker.plan", is_package=True)


@pytest.mark.parametrize(
    ("code", "module", "is_package"),
    [
        ("from stoker.plan import batches\nfrom ..errors import StokerError", "stoker.engine.machine", False),
        ("from . import batches\nfrom .cursor import Cursor", "stoker.plan", True),
        ("from .cursor import Cursor\nimport torch, jax.numpy", "stoker.plan.batches", False),
        ("from stoker.loader import Loader\nfrom .errors import StokerError", "stoker", True),
        ("import stoker\nfrom stoker import Loader", "stoker.cli.demo", False),
    ],
)
def test_imports_of_what_stands_above_pass(code: str, module: str, is_package: bool):
    assert violations(code, module, is_package) == []
