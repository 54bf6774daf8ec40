"""Datasets that are no sequence of samples, but columns: a dict of arrays; and those that have to be made one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from stoker.collation.tensors import is_tensor

_WANTED = "Pass an object with __getitem__ and __len__, or a class, functools.partial or function that makes one"
_OTHERWISE = (
    "For items that come one after the other, use stoker.stream(function, items); "
    "for files, pass stoker.Chunks(files) as the dataset"
)
_COLUMNS = "a dict of arrays: {{name: {it}[name].to_numpy() for name in {it}.{names}}}"
# What libraries call their tables and columns, and what to pass instead.
_OF_LIBRARIES = {
    ("pandas", "DataFrame"): _COLUMNS.format(it="frame", names="columns"),
    ("pandas", "Series"): "its values: series.to_numpy()",
    ("polars", "DataFrame"): _COLUMNS.format(it="frame", names="columns"),
    ("polars", "LazyFrame"): _COLUMNS.format(it="frame.collect()", names="columns"),
    ("pyarrow", "Table"): _COLUMNS.format(it="table", names="column_names"),
    ("pyarrow", "RecordBatch"): "a dict of arrays: {name: batch[name].to_numpy(zero_copy_only=False) "
    "for name in batch.schema.names}",
    ("pyarrow", "ChunkedArray"): "its values: array.to_numpy()",
    ("pyarrow", "Array"): "its values: array.to_numpy(zero_copy_only=False)",
    ("numpy", "NpzFile"): "a dict of arrays: dict(file)",
    ("h5py", "Group"): "one of its datasets, or a dict of arrays: {name: file[name][:] for name in file}",
    ("xarray", "Dataset"): "a dict of arrays: {name: dataset[name].to_numpy() for name in dataset}",
}


@dataclass(frozen=True)
class Table:
    """Columns of one length, as a dataset: sample i has the i-th element of each."""

    columns: dict[str, Any]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {name: column[index] for name, column in self.columns.items()}


def as_dataset(dataset: Any) -> Any:
    """A dataset that can be asked for samples by number: the one given, or, for a dict of arrays, a ``Table`` of it.

    Raises:
        TypeError: It cannot be asked so, or would not mean what it seems to: the message says what to pass instead.
        ValueError: Columns of several lengths.
    """
    _refuse_tables(dataset)
    if isinstance(dataset, dict) and type(dataset).__getitem__ is dict.__getitem__ and _has_names(dataset):
        return _table(dataset)
    if isinstance(dataset, str):
        raise TypeError("dataset: a str is no dataset. To read files, pass stoker.Chunks(files)")
    if type(dataset) is tuple and len(dataset) > 1 and all(map(_may_be_column, dataset)):
        _refuse_arrays(dataset)
    check_class(type(dataset))
    return dataset


def check_class(cls: type) -> None:
    """Whether what is of that class can be asked for samples by number."""
    for method in ("__getitem__", "__len__"):
        if not hasattr(cls, method):
            raise TypeError(f"dataset: {cls.__name__} has no {method}. {_WANTED}. {_OTHERWISE}")


def _refuse_tables(dataset: Any) -> None:
    """Tables of other libraries: sample 3 would be a column of that name, or something odd."""
    instead = _instead_of(dataset)
    if instead is not None:
        raise TypeError(f"dataset: a {type(dataset).__name__} has no samples by number. Pass {instead}")


def _instead_of(dataset: Any) -> str | None:
    names = ((cls.__module__.partition(".")[0], cls.__name__) for cls in type(dataset).__mro__)
    return next((_OF_LIBRARIES[name] for name in names if name in _OF_LIBRARIES), None)


def _has_names(columns: dict[Any, Any]) -> bool:
    return bool(columns) and all(isinstance(name, str) for name in columns)


def _table(columns: dict[str, Any]) -> Table:
    for name, column in columns.items():
        if not isinstance(column, list) and not _is_array(column):
            inner = f"dataset[{name!r}]" if hasattr(column, "__getitem__") and not isinstance(column, Mapping) else ""
            remedy = f"Pass {inner}, or a" if inner else "Pass a"
            raise TypeError(
                f"dataset: a dict is taken for columns, and dataset[{name!r}] is a {type(column).__name__}. "
                f"{remedy} dict of arrays, tensors or lists of one length"
            )
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(
            f"dataset: the columns of the dict have different lengths: {lengths}. Pass columns of one length"
        )
    return Table(columns)  # itself: what the user puts there between epochs arrives


def _is_array(value: Any) -> bool:
    return (isinstance(value, np.ndarray) or is_tensor(value)) and value.ndim > 0


def _may_be_column(value: Any) -> bool:
    """An array of any framework, or a table or column of another library."""
    return (hasattr(value, "dtype") and len(getattr(value, "shape", ())) > 0) or _instead_of(value) is not None


def _refuse_arrays(arrays: tuple[Any, ...]) -> None:
    shapes = ", ".join(str(tuple(getattr(array, "shape", ()))) for array in arrays)
    raise TypeError(
        f"dataset: a tuple of {len(arrays)} arrays, of the shapes {shapes}, may be columns or samples. "
        f'For their rows, pass a dict of arrays: {{"x": X, "y": y}}; if each of them is a sample, pass list(arrays)'
    )
