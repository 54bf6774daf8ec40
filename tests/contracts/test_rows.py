"""Samples that a collate function leaves as they are: rows with arrays in them are the consumer's own everywhere."""

from __future__ import annotations

import numpy as np
import pytest

import stoker
from stoker import Loader

FORMS = {
    "pairs": lambda array, index: (array, index),
    "dicts": lambda array, index: {"x": array, "label": f"label {index}"},
    "nested": lambda array, index: [array, {"caption": f"label {index}", "tags": ["tag"] * (index % 3)}],
    "ragged": lambda array, index: (array[: index % 50], index),
}


class Samples:
    """Rows of one form, each with an array that tells it apart."""

    def __init__(self, form):
        self.form = form

    def __len__(self):
        return 240

    def __getitem__(self, index):
        return FORMS[self.form](np.random.default_rng(index).random(50), index)


def told(batch):
    """All that is in it, by value."""
    found = []
    stoker.map_leaves(lambda leaf: found.append(leaf.tolist() if isinstance(leaf, np.ndarray) else leaf), batch)
    return [type(row) for row in batch], found


def expected(form):
    samples = [Samples(form)[index] for index in range(240)]
    return [told(samples[k : k + 12]) for k in range(0, 240, 12)]


@pytest.mark.parametrize("form", FORMS)
def test_rows_that_are_held_never_change(backend, form):
    with Loader(Samples(form), 12, collate=list, workers=backend) as loader:
        held = list(loader)
        assert [told(batch) for batch in loader] == expected(form)
    assert [told(batch) for batch in held] == expected(form)


def test_one_row_holds_its_batch(backend):
    with Loader(Samples("pairs"), 12, collate=list, workers=backend) as loader:
        rows = [batch[5] for batch in loader for _ in range(2)]
    assert all(np.array_equal(array, Samples("pairs")[index][0]) for array, index in rows)


@pytest.mark.parametrize("form", ["pairs", "ragged"])
def test_rows_are_the_consumers_own_to_write_into(backend, form):
    with Loader(Samples(form), 12, collate=list, workers=backend) as loader:
        for _ in range(2):
            for step, batch in enumerate(loader):
                assert told(batch) == expected(form)[step]
                for array, _ in batch:
                    array[:] = -1
