"""The folder that `stoker replay` is run in."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.cli.replaying import SHAPES


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")  # the module is edited within a second, too fast for its cache
    (tmp_path / "shapes.py").write_text(textwrap.dedent(SHAPES))
    return tmp_path
