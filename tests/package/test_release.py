"""What a release says of itself is the same wherever it is said."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import stoker

_ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("file", "pattern"),
    [("CITATION.cff", r"^version: (\S+)$"), ("CHANGELOG.md", r"^## \[(\d\S*)\]")],
)
def test_the_newest_version_is_the_one_that_the_package_has(file, pattern):
    said = re.search(pattern, (_ROOT / file).read_text(), re.MULTILINE)
    assert said
    assert said[1] == stoker.__version__
