"""Warnings filters, as they travel: with their categories by name, so that nothing is imported for them."""

from __future__ import annotations

import pickle
import warnings

import pytest

from stoker.workers.processes.warning_filters import WarningFilter, WarningFilters


class Odd(UserWarning):
    class Inner(Warning):
        pass


def test_they_are_the_same_elsewhere():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "some.*words", Odd, "module", 7)
        warnings.simplefilter("error", Odd.Inner)
        warnings.filterwarnings("always", category=DeprecationWarning, append=True)
        expected = list(warnings.filters)
        there = pickle.loads(pickle.dumps(WarningFilters.here()))
        warnings.resetwarnings()
        there.apply()
        assert list(warnings.filters) == expected


def test_a_category_of_a_module_that_is_not_loaded_is_known_by_its_name():
    filters = (
        WarningFilter("error", None, "not.loaded", "Category", None, 0),
        WarningFilter("ignore", None, "builtins", "Warning", None, 0),
    )
    category = type("Category", (UserWarning,), {"__module__": "not.loaded"})
    derived = type("Derived", (category,), {})
    with warnings.catch_warnings():
        WarningFilters(filters).apply()
        warnings.warn("it is another", UserWarning, stacklevel=1)
        for one in (category, derived):
            with pytest.raises(one):
                warnings.warn("it is the one", one, stacklevel=1)
