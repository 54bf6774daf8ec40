"""Datasets of sequences, and what is in packed batches."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

import stoker


class Documents:
    """Sequences of different lengths, each of whose tokens tells which sequence and which place it is of."""

    def __init__(self, count: int = 100, longest: int = 30, seed: int = 0) -> None:
        self.lengths = np.random.default_rng(seed).integers(0, longest + 1, count).tolist()

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: int) -> Any:
        return index * 1000 + np.arange(self.lengths[index], dtype=np.int32)


class Records(Documents):
    """The same as dicts, with labels."""

    def __getitem__(self, index: int) -> Any:
        tokens = super().__getitem__(index)
        return {"input_ids": tokens, "labels": (-tokens).tolist(), "source": f"document {index}"}


class Failing(Documents):
    """Some cannot be read."""

    def __getitem__(self, index: int) -> Any:
        if index % 10 == 3:
            raise OSError(f"document {index} is gone")
        return super().__getitem__(index)


def loader(dataset: Any = None, batch_size: int | None = 4, **options: Any) -> stoker.Loader[Any]:
    """With rows and windows so small that batches, loose rows and windows are of all kinds."""
    options.setdefault("pack", stoker.Pack(24, window=16))
    options.setdefault("shuffle", True)
    return stoker.Loader(Documents() if dataset is None else dataset, batch_size, **options)


def tokens_of(batches: list[Any], name: str = "tokens") -> Counter[int]:
    """All tokens but padding."""
    found: Counter[int] = Counter()
    for batch in batches:
        found.update(np.asarray(batch[name])[np.asarray(batch["segment_ids"]) > 0].tolist())
    return found


def all_tokens(dataset: Any, indices: Any = None) -> Counter[int]:
    indices = range(len(dataset)) if indices is None else indices
    return Counter(token for index in indices for token in dataset[index].tolist())


def check_segments(batches: list[Any], name: str = "tokens") -> None:
    """Each segment is of one sequence, its tokens in their order, and its positions rise from 0."""
    for batch in batches:
        for tokens, segments, positions in zip(batch[name], batch["segment_ids"], batch["position_ids"], strict=True):
            for number in range(1, int(segments.max()) + 1):
                piece = tokens[segments == number]
                assert (np.diff(piece) == 1).all()
                assert len(set((piece // 1000).tolist())) == 1
                assert positions[segments == number].tolist() == list(range(len(piece)))
