"""The code in README and docs runs, and so do the examples in docstrings."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

import stoker

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "examples" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
OTHERS = [ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]
FENCE = re.compile(r"^ *```([^\n]*)\n.*?^ *```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
FRAMEWORK = re.compile(
    r'^(?:import|from stoker\.)\s?(torch|jax|tensorflow|tinygrad)\b|\bto="(torch|jax|tensorflow|tinygrad)"',
    re.MULTILINE,
)
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
WITH_CODE = [page for page in PAGES if CODE.search(page.read_text())]
GUIDES = [page for page in sorted((ROOT / "docs").glob("*.md")) if page.stem not in {"api", "cli", "architecture"}]
WITHOUT_CODE_FIRST = {"doctor", "benchmarks", "systems"}  # a command of the terminal, figures, what runs where


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
def test_all_code_of_a_page_is_run(page):
    """A block is Python, which the test above runs, or it says nothing of its language and is a terminal's."""
    assert {name for name in FENCE.findall(page.read_text()) if name} <= {"python"}


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_a_guide_begins_with_code_that_runs(page):
    text = page.read_text()
    if page.stem not in WITHOUT_CODE_FIRST:
        before = text[: text.index("```python")]
        assert len(before.split()) < 150, "the shortest way comes first"


@pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    """On the forge, where a heading's anchor is made of its words; ``make docs`` checks those of the site."""
    for target, anchor in LINK.findall(page.read_text()):
        linked = page.parent / target if target else page
        assert linked.exists(), f"{page.name} links to {target}"
        if anchor and linked.suffix == ".md":
            assert anchor in _anchors(linked), f"{page.name} links to {target}#{anchor}"


def _anchors(page: Path) -> set[str]:
    headings = HEADING.findall(FENCE.sub("", page.read_text()))
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def test_the_site_has_all_pages_and_no_link_leads_out_of_it():
    """What ``make docs`` checks before it builds anything."""
    spec = spec_from_file_location("stage", ROOT / "docs" / "stage.py")
    assert spec is not None
    assert spec.loader is not None
    stage = module_from_spec(spec)
    spec.loader.exec_module(stage)
    assert stage.problems(stage.gathered()) == []


@pytest.mark.parametrize("page", ["api.md", "testing.md"])
def test_the_reference_names_what_is_there(page):
    for name in re.findall(r"^::: (\S+)$", (ROOT / "docs" / page).read_text(), re.MULTILINE):
        if name.startswith("stoker.torch."):
            pytest.importorskip("torch")
        assert pkgutil.resolve_name(name).__doc__, name


def _modules() -> list[str]:
    return [module.name for module in pkgutil.walk_packages(stoker.__path__, "stoker.")]


@pytest.mark.parametrize("name", _modules())
def test_examples_in_docstrings_run(name):
    if name.startswith("stoker.bridges.to_"):
        pytest.importorskip(name.rpartition("_")[2])
    if name.startswith("stoker.workers.ray."):
        pytest.importorskip("ray")
    if name == "stoker.batches" or name.startswith("stoker.torch"):
        pytest.importorskip("torch")
    assert not doctest.testmod(importlib.import_module(name)).failed
