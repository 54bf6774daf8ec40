"""Domains of keys: no two purposes draw by the same key."""

from __future__ import annotations

import ast
from pathlib import Path

import stoker.plan
from stoker.plan.domains import Domain


def test_each_purpose_has_a_number_of_its_own_and_none_is_left_out():
    assert [domain.value for domain in Domain] == list(range(1, len(Domain) + 1))


def test_the_plan_derives_no_key_from_a_number_that_is_written_out():
    """It would be a domain that nobody can tell from the others. ``Nearby`` goes on from a key of its own."""
    for file in Path(stoker.plan.__file__).parent.glob("*.py"):
        for call in ast.walk(ast.parse(file.read_text())):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "derive":
                assert not isinstance(call.args[0], ast.Constant), f"{file.name}, line {call.lineno}"
