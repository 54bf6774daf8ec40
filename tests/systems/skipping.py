"""A plugin of pytest's for a system that lacks something: a test of what is said not to work there is skipped."""

from __future__ import annotations

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call():
    try:
        return (yield)
    except NotImplementedError as error:
        if "does not work on this system" in str(error):
            pytest.skip(str(error))
        raise
