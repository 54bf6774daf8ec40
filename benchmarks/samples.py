"""Datasets of samples in the forms that people have, each written as people do."""

from __future__ import annotations

from typing import Any

import numpy as np

import stoker
from benchmarks import contents
from benchmarks.collations import (
    Columns,
    as_they_are,
    bare,
    by_field,
    by_key,
    by_path,
    filled_up,
    stacked,
    without_missing,
    zipped,
)
from benchmarks.contents import POOL


class Form:
    """Samples made of what it holds, and of nothing else: a loader may look at all of it.

    `columns` takes samples apart for the limit; `collate` stands for the loader's own collation where it is given, and
    `collate_of_stoker` for that again.
    """

    holds = ""  # names of functions in contents.py
    columns: Columns | None = None
    collate: Any = None
    collate_of_stoker: Any = None

    def __init__(self, length: int) -> None:
        self.length = length
        for name in self.holds.split():
            setattr(self, name, getattr(contents, name)())

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
        return contents.Pair(self.rows[index], index)


class DataclassForm(Form):
    holds = "rows"
    columns = staticmethod(by_field)

    def __getitem__(self, index: int) -> Any:
        index %= POOL
        return contents.Record(self.rows[index], index)


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
