"""A file fits into a head and a class into another: what grows past that is asking to be two."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("src", "tests", "benchmarks", "examples")

LINES = 400
METHODS = 20
# What has more: the face, which has as many methods as users have wishes, and the torch drop-in's way to workers.
WIDER = {"Loader": 25, "InWorkers": 22}


def classes(code: str) -> Iterator[tuple[str, int]]:
    """Each class, and how many methods and properties it has."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ClassDef):
            yield node.name, sum(isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef) for part in node.body)


def test_no_file_is_longer_than_can_be_read_at_once():
    sizes = {path: len(path.read_text().splitlines()) for name in FOLDERS for path in (ROOT / name).rglob("*.py")}
    assert len(sizes) > len(FOLDERS)
    assert {str(path): size for path, size in sizes.items() if size > LINES} == {}


def test_no_class_does_the_work_of_several():
    found = [(path, *one) for path in (ROOT / "src").rglob("*.py") for one in classes(path.read_text())]
    assert found
    assert [(str(path), name, count) for path, name, count in found if count > WIDER.get(name, METHODS)] == []


def test_methods_are_counted():
    code = "class A:\n    x = 1\n    def f(self): ...\n    @property\n    def g(self): ...\n    class B: ...\n"
    assert dict(classes(code)) == {"A": 2, "B": 0}
