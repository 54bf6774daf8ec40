"""PyLoader's collators may give tensors: they come to the consumer as such."""

from __future__ import annotations

import pytest

from stoker.compat.pyloader import DataCollator
from tests.compat.chunked import make, write_chunks


@pytest.fixture
def folder(tmp_path):
    return write_chunks(tmp_path / "data", [5, 0, 3, 8, 1, 4, 0])


class Torch(DataCollator):
    def collate_batch(self, batch_data):
        import torch

        return {key: torch.tensor(values) for key, values in batch_data.items()}


class TensorFlow(DataCollator):
    def collate_batch(self, batch_data):
        import tensorflow

        return {key: tensorflow.constant(values) for key, values in batch_data.items()}


@pytest.mark.parametrize("queue", [1, 3])
def test_tensors_of_torch(folder, queue):
    torch = pytest.importorskip("torch")
    with make(folder, collator=Torch(), max_queue_size=queue) as loader:
        batches = list(loader)
    assert all(type(batch["x"]) is torch.Tensor for batch in batches)
    assert torch.cat([batch["double"] for batch in batches]).tolist() == list(range(0, 42, 2))


def test_tensors_of_tensorflow(folder):
    tensorflow = pytest.importorskip("tensorflow")
    with make(folder, collator=TensorFlow(), max_queue_size=2) as loader:
        batches = list(loader)
    assert all(tensorflow.is_tensor(batch["x"]) for batch in batches)
    assert tensorflow.concat([batch["x"] for batch in batches], 0).numpy().tolist() == list(range(21))
