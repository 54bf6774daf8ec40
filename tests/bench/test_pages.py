"""The tables in the README and the docs are those of the last whole run of the bench."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks import pages

ROOT = Path(__file__).parent.parent.parent
RUN = json.loads((ROOT / "benchmarks" / "results" / "latest.json").read_text(encoding="utf-8"))
PAGES = [
    path
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    if "<!-- bench" in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_page_shows_the_figures_of_the_last_whole_run(path: Path) -> None:
    page = path.read_text(encoding="utf-8")
    assert pages.fill(page, RUN) == page, "run `python -m benchmarks.pages`"


def test_only_what_stands_between_the_marks_is_replaced() -> None:
    before, after = "# A page\n\nWords.\n\n", "\nMore words.\n"
    page = f"{before}<!-- bench forms -->\nold\n<!-- /bench forms -->\n{after}"
    filled = pages.fill(page, RUN)
    assert filled.startswith(before)
    assert filled.endswith(f"<!-- /bench forms -->\n{after}")
    assert "old" not in filled
    assert "| **tuple**: (array, int), samples/s | **" in filled
    assert pages.fill(filled, RUN) == filled


def test_a_page_without_marks_stays_as_it_is() -> None:
    assert pages.fill("No marks.\n", RUN) == "No marks.\n"
