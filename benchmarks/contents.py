"""What the samples of the forms hold: rows of bytes, texts, tensors, images, objects, in memory."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.datasets import Array

POOL = 4096  # samples in memory: 4 MB of bytes
_WORDS = 24  # of a text, some 150 characters
_TOKENS = 32  # of a list of ints
_SIDE = 18  # pixels of an image of about 1 KB
_ENCODED = 128  # tokens of a text, as a tokenizer gives them: 1 KB
_BIG = (64, 3, 224, 224)

Pair = namedtuple("Pair", "x y")  # as people write them


@dataclass
class Record:
    x: Array
    y: int


class Own:
    """An object that no loader knows."""

    def __init__(self, x: Array, text: str) -> None:
        self.x, self.text = x, text


def _chance() -> np.random.Generator:
    return np.random.default_rng(0)


def rows() -> Array:
    return _chance().integers(0, 255, size=(POOL, 1024), dtype=np.uint8)


def texts() -> list[str]:
    return [" ".join(map(str, words)) for words in _chance().integers(0, 10**6, size=(POOL, _WORDS)).tolist()]


def floats() -> list[dict[str, float]]:
    return [{f"f{k}": float(i + k) for k in range(20)} for i in range(POOL)]


def scalars() -> list[Array]:
    return [np.array(label) for label in range(POOL)]


def tensors() -> Any:
    import torch

    return torch.from_numpy(rows())


def labels() -> Any:
    import torch

    return torch.arange(POOL)


def pairs() -> list[tuple[Any, int]]:
    return [(row, index) for index, row in enumerate(tensors())]


def encodings() -> list[dict[str, Any]]:
    """Texts as they leave a tokenizer, each tensor with memory of its own."""
    import torch

    ids = torch.from_numpy(_chance().integers(0, 50_000, size=(POOL, _ENCODED)))
    return [{"input_ids": row.clone(), "attention_mask": torch.ones_like(row), "labels": row.clone()} for row in ids]


def big_tensors() -> list[Any]:
    import torch

    return [tensor.clone() for tensor in torch.from_numpy(_chance().random(_BIG, dtype=np.float32))]


def kept_tensors() -> list[Any]:
    return [tensor for tensor, _ in pairs()]


def kept_rows() -> list[Array]:
    return list(rows())


def leaves() -> list[dict[str, Array]]:
    values = _chance().random((POOL, 50, 4), dtype=np.float32)
    return [{f"a{k}": row for k, row in enumerate(sample)} for sample in values]


def lengths() -> list[int]:
    found: list[int] = _chance().integers(500, 1024, size=POOL).tolist()
    return found


def blobs() -> list[bytes]:
    return [row.tobytes() for row in rows()]


def tokens() -> list[list[int]]:
    found: list[list[int]] = _chance().integers(0, 50_000, size=(POOL, _TOKENS)).tolist()
    return found


def images() -> list[Any]:
    from PIL import Image

    return [Image.fromarray(pixels) for pixels in _chance().integers(0, 255, (POOL, _SIDE, _SIDE, 3), np.uint8)]


def objects() -> list[Own]:
    return [Own(row, text) for row, text in zip(rows(), texts(), strict=True)]
