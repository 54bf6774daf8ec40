"""Fewer backends than elsewhere: what a sample goes through does not depend on how its worker was started."""

from __future__ import annotations

import pytest

from stoker import Inline, Processes, Threads


@pytest.fixture(params=[Inline(), Threads(3), Processes(3), Processes(2, start="fork")], ids=repr)
def backend(request):
    """A place where workers can live; ``Inline`` is the oracle of the others."""
    return request.param
