"""A watch tells as soon as a module is there, and leaves the module as it would be without."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys

import pytest

from stoker.workers.late_imports import ImportBracket, ImportWatch


@pytest.fixture
def module(tmp_path, monkeypatch):
    """The name of a module that nobody has imported yet."""
    (tmp_path / "imported_late.py").write_text("loader_seen = __spec__.loader, __loader__\n")
    (tmp_path / "imported_broken.py").write_text("raise RuntimeError('broken')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    before = list(sys.meta_path)
    yield "imported_late"
    assert sys.meta_path == before
    sys.modules.pop("imported_late", None)


def watched(name, then):
    watch = ImportWatch(name, then)
    watch.start()
    return watch


def test_it_tells_when_the_module_is_there(module):
    seen = []
    watch = watched(module, lambda: seen.append(hasattr(sys.modules[module], "loader_seen")))
    assert importlib.util.find_spec(module) is not None
    assert seen == []
    found = importlib.import_module(module)
    watch.stop()
    assert seen == [True]
    true = found.__spec__.loader
    assert type(true).__module__.startswith("_frozen_importlib")
    assert found.loader_seen == (true, true)
    assert found.__loader__ is true


def test_several_are_told_the_inner_ones_last(module):
    seen = []
    outer, inner = watched(module, lambda: seen.append("outer")), watched(module, lambda: seen.append("inner"))
    importlib.import_module(module)
    inner.stop()
    outer.stop()
    assert seen == ["outer", "inner"]


def test_a_module_that_is_not_there_or_breaks_does_so_as_ever(module):
    seen = []
    for name, error in (("no_such_module", ModuleNotFoundError), ("imported_broken", RuntimeError)):
        watch = watched(name, lambda: seen.append(1))
        with pytest.raises(error):
            importlib.import_module(name)
        watch.stop()
        watch.stop()
    assert seen == []


def test_one_that_was_stopped_tells_nothing(module):
    seen = []
    watch = watched(module, lambda: seen.append(1))
    spec = importlib.util.find_spec(module)
    watch.stop()
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    assert seen == []


def test_a_bracket_is_around_the_outermost_import_only(module, tmp_path):
    (tmp_path / "imports_another.py").write_text(f"import {module}\n")
    seen = []

    @contextlib.contextmanager
    def around():
        seen.append([name in sys.modules for name in ("imports_another", module)])
        try:
            yield
        finally:
            seen.append([name in sys.modules for name in ("imports_another", module)])

    bracket = ImportBracket(around, lambda: True)
    bracket.start()
    try:
        found = importlib.import_module("imports_another")
        with pytest.raises(RuntimeError, match="broken"):
            importlib.import_module("imported_broken")
    finally:
        bracket.stop()
        sys.modules.pop("imports_another", None)
    assert seen == [[True, False], [True, True], [True, True], [True, True]]
    assert type(found.__spec__.loader).__module__.startswith("_frozen_importlib")


def test_a_bracket_applies_only_where_it_should(module):
    bracket = ImportBracket(contextlib.nullcontext, lambda: False)
    bracket.start()
    loader = importlib.util.find_spec(module).loader
    bracket.stop()
    assert type(loader).__module__.startswith("_frozen_importlib")


def test_who_walks_along_the_finders_meanwhile_misses_none(module):
    before = list(sys.meta_path)
    first, second = ImportWatch(module, list), ImportBracket(contextlib.nullcontext, lambda: True)
    first.start()
    walk = iter(sys.meta_path)
    assert next(walk) is first
    second.start()
    first.stop()
    assert list(walk) == before
    second.stop()
