"""Samples that are large: Ray copies them from where the dataset has them, and the stream is the same."""

from __future__ import annotations

import numpy as np
import pytest

import stoker
from stoker import CollateError, Loader
from tests.streams import assert_same, epochs

pytestmark = pytest.mark.timeout(200)


class Large:
    """Samples of 1.6 MB, 12 a batch: more than a run may have. All are made in one array of the dataset's own."""

    def __init__(self):
        self.rows = np.zeros((12, 400_000), np.float32)

    def __len__(self):
        return 48

    def __getitem__(self, index):
        row = self.rows[index % 12]
        row[:] = index
        return {"x": row, "ragged": np.zeros(3 + (index == 30)), "index": index}


def test_the_stream_is_the_same_and_batches_are_ones_own():
    def clean(batch):
        batch["x"] += 1  # which is written into nobody else's memory
        return batch

    with Loader(Large, 12, workers=stoker.Ray(2)) as loader, Loader(Large, 12) as same:
        with pytest.raises(CollateError, match="ragged"):
            epochs(loader, 1)
        loader.set_epoch(1)
        got, wanted = iter(loader), iter(same)
        for _ in range(2):
            assert_same([[clean(next(got))]], [[clean(next(wanted))]])
