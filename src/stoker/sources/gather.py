"""Datasets that are arrays: the rows of a batch are taken out of them at once, straight into the batch's memory.

Only those whose samples are surely just the rows: numpy arrays, torch tensors, torch's ``TensorDataset``, a dict of
arrays (``Table``), and torch's ``Subset`` of these; no classes that derive from them. Hugging Face's ``Dataset`` makes
the rows of a batch at once itself.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stoker.collation.columns import Array, Columnar, Gathered, Taken, TakenOfSeveral
from stoker.collation.tensors import dtype_name, is_plain_tensor, is_tensor, tensor_as_array
from stoker.sources.tables import Table

_FEW = 4  # rows: fewer are as quickly taken one by one


def gathered(dataset: Any, indices: Sequence[int]) -> Gathered | None:
    """The samples with these indices, for the default collation to gather; None where that is not surely the same."""
    if len(indices) < _FEW:
        return None
    data = sys.modules.get("torch.utils.data")  # another thread may be just about to load it
    subset, tensors = getattr(data, "Subset", None), getattr(data, "TensorDataset", None)
    within, mapped = dataset, indices
    try:
        while type(within) is subset:
            mapped = [within.indices[index] for index in mapped]
            within = within.dataset
        tree = _tree(within, tensors, mapped)
    except Exception:  # one by one it will come again, and then it is known of which sample
        return None
    return None if tree is None else Gathered(dataset, indices, tree)


def gathered_of_several(
    dataset: Any, indices: Sequence[int], parts: Sequence[tuple[Any, Array, Array]]
) -> Gathered | None:
    """The same of several datasets in one: ``parts`` has each with the indices there, and their places in the batch."""
    if len(indices) < _FEW:
        return None
    tensors = getattr(sys.modules.get("torch.utils.data"), "TensorDataset", None)
    try:
        trees = [(_tree(source, tensors, own), places) for source, own, places in parts]  # type: ignore[arg-type]
    except Exception:
        return None
    joined = _joined(trees)
    return None if joined is None else Gathered(dataset, indices, joined)


def _joined(trees: list[tuple[Any, Array]]) -> Any:
    """One tree of the samples of several; None where they have not the same form."""
    first = trees[0][0]
    if isinstance(first, Taken):
        forms = {(tree.shape[1:], tree.dtype, tree.tensor) if isinstance(tree, Taken) else None for tree, _ in trees}
        return TakenOfSeveral(trees) if len(forms) == 1 else None
    if not first or any(type(tree) is not type(first) or len(tree) != len(first) for tree, _ in trees):
        return None
    keys = list(first) if isinstance(first, dict) else list(range(len(first)))
    if isinstance(first, dict) and any(list(tree) != keys for tree, _ in trees):
        return None
    columns = [_joined([(tree[key], places) for tree, places in trees]) for key in keys]
    if any(column is None for column in columns):
        return None
    return dict(zip(keys, columns, strict=True)) if isinstance(first, dict) else tuple(columns)


def gives_many(dataset: Any) -> bool:
    """Whether the samples of a batch may be had at once."""
    if hasattr(dataset, "__getitems__") or type(dataset) in (Table, np.ndarray, np.memmap):
        return True
    return type(dataset).__module__.partition(".")[0] in ("torch", "datasets")


def as_columns(dataset: Any, indices: Sequence[int]) -> Columnar | None:
    """The samples of Hugging Face's ``Dataset``, as it has them; its ``__getitems__`` would take them apart first.

    None where it is another dataset, or does not give so many samples.
    """
    arrow = sys.modules.get("datasets.arrow_dataset")
    if type(dataset) is not getattr(arrow, "Dataset", None):
        return None
    batch = dataset[list(indices)]
    if not isinstance(batch, Mapping) or not batch or {len(batch[key]) for key in batch} != {len(indices)}:
        return None
    return Columnar({key: batch[key] for key in batch}, len(indices))


def _tree(dataset: Any, tensors: Any, indices: Sequence[int]) -> Any:
    """Samples that are arrays alone, tuples of them, or dicts."""
    if type(dataset) is Table:
        columns = _columns(list(dataset.columns.values()), indices)
        return columns and dict(zip(dataset.columns, columns, strict=True))
    if type(dataset) is tensors:
        columns = _columns(dataset.tensors, indices)
        return columns and tuple(columns)
    if type(dataset) in (np.ndarray, np.memmap) or is_tensor(dataset):
        columns = _columns([dataset], indices)
        return columns and columns[0]
    return None


def _columns(arrays: Sequence[Any], indices: Sequence[int]) -> list[Taken] | None:
    found = [_as_array(array) for array in arrays]
    rows = np.asarray(indices)
    if not found or rows.dtype.kind not in "iu" or rows.ndim != 1 or rows.min() < 0:
        return None
    taken = []
    for array, given in zip(found, arrays, strict=True):
        if array is None or len(array) <= rows.max():
            return None
        taken.append(Taken(array, rows, dtype_name(given) if is_tensor(given) else ""))
    return taken


def _as_array(value: Any) -> Array | None:
    """Its memory, if rows of it can be copied as they are. numpy would first make a copy of all that is scattered."""
    if is_tensor(value):
        if not is_plain_tensor(value) or value.is_complex() or not value.ndim or not value.is_contiguous():
            return None
        return tensor_as_array(value)
    if type(value) not in (np.ndarray, np.memmap) or not value.ndim:
        return None
    dtype = value.dtype
    is_simple = dtype.kind in "biuf" and dtype.itemsize <= 8 and dtype.isnative
    return value if is_simple and value.flags.c_contiguous and value.flags.aligned else None
