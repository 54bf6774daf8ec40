"""The code in README and docs runs, and so do the examples in docstrings."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import stoker

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "examples" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
CODE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
FRAMEWORK = re.compile(
    r'^(?:import|from stoker\.)\s?(torch|jax|tensorflow|tinygrad)\b|\bto="(torch|jax|tensorflow|tinygrad)"',
    re.MULTILINE,
)
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)")
WITH_CODE = [page for page in PAGES if CODE.search(page.read_text())]


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_code_of_a_page_runs(page, tmp_path):
    """As a script of its own, all blocks of the page one after the other."""
    code = "\n".join(CODE.findall(page.read_text()))
    needed = {imported or bridged for imported, bridged in FRAMEWORK.findall(code)}
    for name in sorted(needed | ({"ray"} if "stoker.Ray(" in code else set())):
        if find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    script = tmp_path / "page.py"
    script.write_text(code)
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in LINK.findall(page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def _modules() -> list[str]:
    return [module.name for module in pkgutil.walk_packages(stoker.__path__, "stoker.")]


@pytest.mark.parametrize("name", _modules())
def test_examples_in_docstrings_run(name):
    if name.startswith("stoker.bridges.to_"):
        pytest.importorskip(name.rpartition("_")[2])
    if name == "stoker.batches" or name.startswith("stoker.torch"):
        pytest.importorskip("torch")
    assert not doctest.testmod(importlib.import_module(name)).failed
