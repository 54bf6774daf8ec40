"""To Arrow: a record batch over the batch's own memory, which its buffers keep alive.

Numbers, the bytes of strings and the values of lists are not copied. Booleans are (Arrow has eight in a byte), and so
is what is strided or in the other byte order, and what comes as a list of Python's objects.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from stoker.bridges.to_numpy import as_native_array
from stoker.collation.tensors import is_tensor
from stoker.sources.files.arrow_values import ArrowValues
from stoker.sources.files.ragged import Nullable, Ragged
from stoker.sources.files.texts import Texts

Array = np.ndarray[Any, Any]

_MOST = 2**31 - 1  # bytes, or values, that the offsets of strings and lists count


def convert(batch: Any, device: None = None) -> Any:
    """A ``pyarrow.RecordBatch`` with a column for each key.

    Raises:
        TypeError: The batch is no dict of columns, or Arrow has no form for one of them.
        ValueError: The columns are of different lengths, or too long.
    """
    if not isinstance(batch, Mapping):
        raise TypeError(
            f'to="arrow" makes a column of each key of a dict, and the batch is a {type(batch).__name__}: let the '
            f'samples be dicts, as {{"x": sample}}'
        )
    arrays = _columns(batch, "batch")
    return pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))


def _columns(columns: Mapping[Any, Any], path: str) -> dict[str, Any]:
    others = [key for key in columns if not isinstance(key, str)]
    if others or not columns:
        found = f"the key {others[0]!r}" if others else "no keys"
        raise TypeError(f'to="arrow": {path} has {found}, and the columns of Arrow have names: let all keys be strings')
    arrays = {key: _array(column, f"{path}[{key!r}]") for key, column in columns.items()}
    lengths = {key: len(array) for key, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f'to="arrow": the columns of {path} have different lengths: {lengths}')
    return arrays


def _array(column: Any, path: str) -> Any:
    if isinstance(column, Mapping):
        fields = _columns(column, path)
        return pa.StructArray.from_arrays(list(fields.values()), names=list(fields))
    if isinstance(column, Texts):
        return _strings(column, path)
    if isinstance(column, Ragged):
        return _lists(column, path)
    if isinstance(column, ArrowValues):
        return column.array()
    try:
        return _plain(column)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise TypeError(_refusal(column, path, error)) from error


def _plain(column: Any) -> Any:
    if isinstance(column, Nullable):
        return _numbers(column.values, column.nulls)
    if isinstance(column, np.ndarray) and hasattr(column, "mask"):
        return _numbers(np.ma.getdata(column), np.ma.getmaskarray(column))
    array = as_native_array(column)
    if array is not None and array.ndim:
        return _numbers(array, None)
    objects = column.tolist() if isinstance(column, np.ndarray) and column.ndim == 1 else column
    if isinstance(objects, list) and not any(isinstance(one, np.ndarray) or is_tensor(one) for one in objects):
        return pa.array(objects)
    raise TypeError("it is not one value for each sample")


def _numbers(values: Array, nulls: Array | None) -> Any:
    """Each axis beyond the first is a list of a fixed size."""
    mask = None if nulls is None else nulls.reshape(-1)
    array = pa.array(values.reshape(-1), mask=mask, from_pandas=False)
    for size in reversed(values.shape[1:]):
        array = pa.FixedSizeListArray.from_arrays(array, size)
    return array


def _strings(texts: Texts, path: str) -> Any:
    offsets = _offsets(texts.offsets, path)
    return pa.StringArray.from_buffers(len(texts), offsets, pa.py_buffer(texts.data), _bitmap(texts.nulls))


def _lists(ragged: Ragged, path: str) -> Any:
    values = _array(ragged.values, path)
    buffers = [_bitmap(ragged.nulls), _offsets(ragged.offsets, path)]
    return pa.ListArray.from_buffers(pa.list_(values.type), len(ragged), buffers, children=[values])


def _offsets(offsets: Array, path: str) -> Any:
    if offsets[-1] > _MOST:
        raise ValueError(
            f'to="arrow": {path} has {offsets[-1]:,} bytes or values, and a column of Arrow {_MOST:,} at most: '
            f"pass a smaller batch_size"
        )
    return pa.py_buffer(offsets.astype(np.int32))


def _bitmap(nulls: Array | None) -> Any:
    return None if nulls is None else pa.py_buffer(np.packbits(~nulls, bitorder="little"))


def _refusal(column: Any, path: str, error: Exception) -> str:
    why = (str(error).splitlines() or [type(error).__name__])[0]
    array = as_native_array(column) if isinstance(column, np.ndarray) or is_tensor(column) else None
    kind = f"an array of {array.dtype}" if array is not None else f"a {type(column).__name__}"
    return (
        f'to="arrow": {path} is {kind}, for which Arrow has no form ({why}): give arrays of numbers or times, or '
        f"lists with one value for each sample, or leave it out"
    )
