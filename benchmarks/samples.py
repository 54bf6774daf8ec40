"""Datasets of samples in the forms that people have, each written as people do, and how the limit takes them apart."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import stoker
from benchmarks.datasets import Array

POOL = 4096  # samples in memory: 4 MB of bytes
_WORDS = 24  # of a text, some 150 characters
_TOKENS = 32  # of a list of ints
_SIDE = 18  # pixels of an image of about 1 KB
_ENCODED = 128  # tokens of a text, as a tokenizer gives them: 1 KB
_BIG = (64, 3, 224, 224)

Samples = list[Any]
Columns = Callable[[Samples], list[Sequence[Any]]]  # what the limit stacks of the samples of a batch

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


# How the limit takes samples apart.
def bare(samples: Samples) -> list[Sequence[Any]]:
    return [samples]


def zipped(samples: Samples) -> list[Sequence[Any]]:
    return list(zip(*samples, strict=True))


def by_key(samples: Samples) -> list[Sequence[Any]]:
    return [[sample[key] for sample in samples] for key in samples[0]]


def by_field(samples: Samples) -> list[Sequence[Any]]:
    return [[sample.x for sample in samples], [sample.y for sample in samples]]


def by_path(samples: Samples) -> list[Sequence[Any]]:
    inner = [sample["in"] for sample in samples]
    return [*by_key(inner), [sample["y"] for sample in samples]]


# How a batch is made where that is not left to the loader.
def as_they_are(samples: Samples) -> Samples:
    return samples


def filled_up(samples: Samples) -> Any:
    """As people pad with torch."""
    import torch
    from torch.nn.utils.rnn import pad_sequence

    arrays, numbers = zip(*samples, strict=True)
    return pad_sequence([torch.from_numpy(array) for array in arrays], batch_first=True), torch.tensor(numbers)


def stacked(samples: Samples) -> Any:
    """As people stack with torch."""
    import torch

    tensors, numbers = zip(*samples, strict=True)
    return torch.stack(tensors), torch.tensor(numbers)


def without_missing(samples: Samples) -> Any:
    """As people leave out samples that could not be read."""
    from torch.utils.data import default_collate

    return default_collate([sample for sample in samples if sample is not None])


# The datasets.
class Form:
    """Samples made of what it holds, and of nothing else: a loader may look at all of it.

    `columns` takes samples apart for the limit; `collate` stands for the loader's own collation where it is given, and
    `collate_of_stoker` for that again.
    """

    holds = ""  # names of functions above
    columns: Columns | None = None
    collate: Any = None
    collate_of_stoker: Any = None

    def __init__(self, length: int) -> None:
        self.length = length
        for name in self.holds.split():
            setattr(self, name, globals()[name]())

    def __len__(self) -> int:
        return self.length


class ArrayForm(Form):
    holds = "rows"
    columns = staticmethod(bare)

    def __getitem__(self, index: int) -> Any:
        return self.rows[index % POOL]


class PairForm(Form):
    holds = "rows"
    columns = staticmethod(zipped)

    def __getitem__(self, index: int) -> Any:
        index %= POOL
        return self.rows[index], index


class ListForm(Form):
    holds = "rows"
    columns = staticmethod(zipped)

    def __getitem__(self, index: int) -> Any:
        index %= POOL
        return [self.rows[index], index]


class DictForm(Form):
    holds = "rows"
    columns = staticmethod(by_key)

    def __getitem__(self, index: int) -> Any:
        index %= POOL
        return {"x": self.rows[index], "y": index}


class NamedtupleForm(Form):
    holds = "rows"
    columns = staticmethod(zipped)

    def __getitem__(self, index: int) -> Any:
        index %= POOL
        return Pair(self.rows[index], index)


class DataclassForm(Form):
    holds = "rows"
    columns = staticmethod(by_field)

    def __getitem__(self, index: int) -> Any:
        index %= POOL
        return Record(self.rows[index], index)


class TensorForm(Form):
    holds = "tensors"
    columns = staticmethod(zipped)

    def __getitem__(self, index: int) -> Any:
        index %= POOL
        return self.tensors[index], index


class KeptTensorForm(Form):
    holds = "pairs"
    columns = staticmethod(zipped)

    def __getitem__(self, index: int) -> Any:
        return self.pairs[index % POOL]


class StackedForm(KeptTensorForm):
    collate = staticmethod(stacked)


class WithoutMissingForm(KeptTensorForm):
    collate = staticmethod(without_missing)


class EncodingsForm(Form):
    holds = "encodings"
    columns = staticmethod(by_key)

    def __getitem__(self, index: int) -> Any:
        return self.encodings[index % POOL]


class BigTensorForm(Form):
    holds = "big_tensors"
    columns = staticmethod(bare)

    def __getitem__(self, index: int) -> Any:
        return self.big_tensors[index % len(self.big_tensors)]


class TensorsForm(Form):
    holds = "tensors labels"
    columns = staticmethod(by_key)

    def __getitem__(self, index: int) -> Any:
        index %= POOL
        return {"x": self.tensors[index], "y": self.labels[index]}


class NestedForm(Form):
    holds = "rows texts"
    columns = staticmethod(by_path)

    def __getitem__(self, index: int) -> Any:
        index %= POOL
        return {"in": {"x": self.rows[index], "text": self.texts[index]}, "y": index}


class FloatsForm(Form):
    holds = "floats"
    columns = staticmethod(by_key)

    def __getitem__(self, index: int) -> Any:
        return self.floats[index % POOL]


class LeavesForm(Form):
    holds = "leaves"
    columns = staticmethod(by_key)

    def __getitem__(self, index: int) -> Any:
        return self.leaves[index % POOL]


class TextForm(Form):
    holds = "texts"
    columns = staticmethod(zipped)

    def __getitem__(self, index: int) -> Any:
        index %= POOL
        return self.texts[index], index


class NumpyIntForm(Form):
    holds = "rows"
    columns = staticmethod(zipped)

    def __getitem__(self, index: int) -> Any:
        index %= POOL
        return self.rows[index], np.int64(index)


class NoAxesForm(Form):
    holds = "rows scalars"
    columns = staticmethod(zipped)

    def __getitem__(self, index: int) -> Any:
        index %= POOL
        return self.rows[index], self.scalars[index]


class StringsForm(Form):
    holds = "texts"
    collate = staticmethod(as_they_are)

    def __getitem__(self, index: int) -> Any:
        index %= POOL
        return {"text": self.texts[index], "other": self.texts[-index], "split": "train"}


class RaggedForm(Form):
    holds = "rows lengths"
    collate = staticmethod(filled_up)
    collate_of_stoker = staticmethod(stoker.pad)

    def __getitem__(self, index: int) -> Any:
        index %= POOL
        return self.rows[index, : self.lengths[index]], index


class BytesForm(Form):
    holds = "blobs"
    columns = staticmethod(zipped)

    def __getitem__(self, index: int) -> Any:
        index %= POOL
        return self.blobs[index], index


class IntsForm(Form):
    holds = "tokens"

    def __getitem__(self, index: int) -> Any:
        index %= POOL
        return self.tokens[index], index


class ImagesForm(Form):
    holds = "images"
    collate = staticmethod(as_they_are)

    def __getitem__(self, index: int) -> Any:
        index %= POOL
        return self.images[index], index


class ObjectsForm(Form):
    holds = "objects"
    collate = staticmethod(as_they_are)

    def __getitem__(self, index: int) -> Any:
        return self.objects[index % POOL]
