"""What becomes of Arrow's arrays. Their types decide on it, and never the values that happen to be in one.

| type | column |
|---|---|
| floats | an array; null is NaN |
| timestamps, durations, dates in days | an array; null is NaT |
| integers, booleans | an array; with nulls, ``Nullable`` |
| lists of one size, and tensors of one shape, of these | an array of more dimensions |
| lists of these | ``Ragged`` |
| structs | ``Columns`` |
| strings | ``Texts`` |
| all else | a list of Python's own objects; null is None |
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from stoker.sources.files.arrow_values import ArrowValues
from stoker.sources.files.columns import Column, Columns, rows_of
from stoker.sources.files.opening import needed
from stoker.sources.files.ragged import Array, Nullable, Ragged
from stoker.sources.files.selection import Dtype, Selection
from stoker.sources.files.texts import Texts


def columns_of(table: Any, selection: Selection) -> Columns:
    """The columns of a table, or those of them that were selected."""
    names = table.column_names
    _check_names(names)
    selection.check(names, dotted=True)
    arrays = {name: table.column(name).combine_chunks() for name in selection.columns or names}
    conversion = _Conversion(selection)
    found = conversion.struct(arrays, "")
    conversion.check_all_used()
    return found


class _Conversion:
    """Arrays, by their types. ``path``: the name of a column; ``a.b`` of a field of a struct."""

    def __init__(self, selection: Selection) -> None:
        self._dtypes = selection.dtypes
        self._unused = set(selection.dtypes)
        self._keeps_nulls = selection.keeps_nulls
        self._types = needed("pyarrow.types", "reading columns")

    def struct(self, arrays: dict[str, Any], path: str) -> Columns:
        columns: dict[str | None, Column] = {}
        kinds: dict[str | None, str] = {}
        for name, array in arrays.items():
            dtype = self._dtypes.get(path + name)
            self._unused.discard(path + name)
            columns[name] = self.column(array, path + name, dtype)
            kinds[name] = self._kind(array.type) if dtype is None else str(dtype)
        return Columns(columns, kinds=kinds)

    def check_all_used(self) -> None:
        if self._unused:
            raise ValueError(f"there is no column {min(self._unused)!r}, for which dtypes has a dtype")

    def column(self, array: Any, path: str, dtype: Dtype | None) -> Column:
        array = self._plain(array)
        if dtype is not None and dtype.is_object:
            return list(array.to_pylist())
        if self._keeps_nulls and dtype is None and not self._makes_columns(array.type):
            return ArrowValues.of(array)
        if self._is_nested(array.type):
            return self._nested(array, path, dtype)
        if dtype is not None:
            array = dtype.cast_arrow(array, path)
        if self._is_number(array.type):
            return self._numbers(array)
        texts = _texts(array) if self._is_text(array.type) else None
        return list(array.to_pylist()) if texts is None else texts

    def _plain(self, array: Any) -> Any:
        """Without what only tells how it is stored."""
        if self._types.is_dictionary(array.type):
            return self._plain(array.dictionary_decode())
        if self._types.is_run_end_encoded(array.type):
            return self._plain(needed("pyarrow.compute", "reading columns").run_end_decode(array))
        return array

    def _is_number(self, kind: Any) -> bool:
        types = self._types
        tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_timestamp, types.is_duration)
        return types.is_date32(kind) or any(test(kind) for test in tests)

    def _makes_columns(self, kind: Any) -> bool:
        """Whether what comes of it is something else than a list of Python's objects; or of nothing but None."""
        if self._is_list(kind):
            kind = kind.value_type
            while self._types.is_fixed_size_list(kind):
                kind = kind.value_type
            return self._is_number(kind)
        is_plain = self._is_number(kind) or self._is_text(kind) or self._types.is_null(kind)
        return is_plain or self._is_nested(kind)

    def _is_text(self, kind: Any) -> bool:
        return bool(self._types.is_string(kind) or self._types.is_large_string(kind))

    def _numbers(self, array: Any) -> Column:
        if array.null_count and self._keeps_nulls and self._types.is_floating(array.type):
            return Nullable(array.to_numpy(zero_copy_only=False), _nulls(array))
        if array.null_count and (self._types.is_integer(array.type) or self._types.is_boolean(array.type)):
            filled = array.fill_null(False if self._types.is_boolean(array.type) else 0)
            return Nullable(filled.to_numpy(zero_copy_only=False), _nulls(array))
        return np.asarray(array.to_numpy(zero_copy_only=False))

    def _is_nested(self, kind: Any) -> bool:
        return self._is_list(kind) or (self._types.is_struct(kind) and kind.num_fields > 0) or _is_tensor(kind)

    def _is_list(self, kind: Any) -> bool:
        types = self._types
        return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))

    def _nested(self, array: Any, path: str, dtype: Dtype | None) -> Column:
        kind = array.type
        if self._types.is_struct(kind):
            names = [kind.field(index).name for index in range(kind.num_fields)]
            _check_names(names)
            if dtype is not None:
                dtype.refuse(path, f"a struct: name its fields, as in {path + '.' + names[0]!r}")
            return self.struct(dict(zip(names, array.flatten(), strict=True)), path + ".")
        if _is_tensor(kind):
            shape = tuple(kind.shape) if kind.permutation is None else (kind.storage_type.list_size,)
            base = np.dtype(kind.value_type.to_pandas_dtype()) if dtype is None else dtype.base
            shape = dtype.shape if dtype is not None and dtype.shape else shape
            return self._of_one_length(array.storage, path, Dtype(base, shape))
        if self._types.is_fixed_size_list(kind) or (dtype is not None and dtype.shape):
            return self._of_one_length(array, path, dtype)
        return self._ragged(array, path, dtype)

    def _of_one_length(self, array: Any, path: str, dtype: Dtype | None) -> Column:
        """Lists whose type says that they are of one length, or of which somebody did."""
        is_flat = not self._is_nested(array.type.value_type)
        if self._types.is_fixed_size_list(array.type):
            size = array.type.list_size
        else:
            assert dtype is not None
            size = math.prod(dtype.shape) if is_flat else dtype.shape[0]
            _check_lengths(array, size, path, dtype)
        nulls = _nulls(array)
        values = self._values(array, size, nulls)
        if dtype is None or not dtype.shape:
            return self._cut(self.column(values, path, dtype), nulls, size)
        inner = self.column(values, path, Dtype(dtype.base) if is_flat else dtype.without_first_axis())
        if (math.prod(dtype.shape) if is_flat else dtype.shape[0]) != size:
            dtype.refuse(path, f"lists of {size} values")
        cut = self._cut(inner, nulls, size)
        return cut.reshape(len(array), *dtype.shape) if is_flat and isinstance(cut, np.ndarray) else cut

    def _values(self, array: Any, size: int, nulls: Array) -> Any:
        """So many for each list; for one that is missing, missing ones."""
        if self._types.is_fixed_size_list(array.type):
            values, indices = array.values.slice(array.offset * size, len(array) * size), np.arange(len(array) * size)
        else:
            values, indices = array.flatten(), np.cumsum(~np.repeat(nulls, size)) - 1
        if not nulls.any():
            return values
        return values.take(needed("pyarrow", "reading columns").array(indices, mask=np.repeat(nulls, size)))

    def _cut(self, values: Column, nulls: Array, size: int) -> Column:
        """Into rows of that many."""
        if isinstance(values, np.ndarray):
            return values.reshape(len(nulls), size, *values.shape[1:])
        if isinstance(values, Nullable):
            shape = len(nulls), size, *values.values.shape[1:]
            return Nullable(values.values.reshape(shape), values.nulls.reshape(shape))
        return _lists(values, np.arange(len(nulls) + 1) * size, nulls)

    def _ragged(self, array: Any, path: str, dtype: Dtype | None) -> Column:
        lengths = array.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])
        values = self.column(array.flatten(), path, dtype)  # those of lists that are missing are not among them
        nulls = _nulls(array) if array.null_count else None
        if isinstance(values, np.ndarray | Nullable):
            return Ragged(values, offsets, nulls)
        return _lists(values, offsets, np.zeros(len(array), bool) if nulls is None else nulls)

    def _kind(self, kind: Any) -> str:
        """What a list of Python's objects holds, however the file stores them."""
        types = self._types
        if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
            return self._kind(kind.value_type)
        if self._is_text(kind) or str(kind) == "string_view":
            return "strings"
        if types.is_binary(kind) or types.is_large_binary(kind) or str(kind) == "binary_view":
            return "bytes"
        if self._is_list(kind):
            return f"lists of {self._kind(kind.value_type)}"
        return "decimals" if types.is_decimal(kind) else str(kind)


def _texts(array: Any) -> Texts | None:
    """None where bytes are no UTF-8, which pyarrow does not look at when it reads them."""
    try:
        array.validate(full=True)
    except ValueError:
        return None
    nulls = _nulls(array) if array.null_count else None
    filled = array if nulls is None else array.fill_null("")
    _, starts, data = filled.buffers()
    if not len(array):
        return Texts(np.zeros(0, np.uint8), np.zeros(1, np.int64))
    width = np.dtype("int32" if array.type == "string" else "int64")
    offsets = np.frombuffer(starts, width, len(array) + 1, filled.offset * width.itemsize).astype(np.int64)
    used = np.frombuffer(data or b"", np.uint8)[offsets[0] : offsets[-1]]
    return Texts(used, offsets - offsets[0], nulls)


def _lists(values: Column, offsets: Array, nulls: Array) -> list[Any]:
    rows, bounds = rows_of(values), itertools.pairwise(offsets.tolist())
    pairs = zip(bounds, nulls.tolist(), strict=True)
    return [None if is_null else rows[begin:end] for (begin, end), is_null in pairs]


def _nulls(array: Any) -> Array:
    nulls: Array = array.is_null().to_numpy(zero_copy_only=False)
    return nulls


def _check_lengths(array: Any, size: int, path: str, dtype: Dtype) -> None:
    lengths = array.value_lengths().fill_null(size).to_numpy(zero_copy_only=False)
    others = np.flatnonzero(lengths != size)
    if len(others):
        dtype.refuse(path, f"a list of {lengths[others[0]]} values in row {others[0]}")


def _check_names(names: list[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"several columns have the same name: {', '.join(map(repr, twice))}")


def _is_tensor(kind: Any) -> bool:
    return str(getattr(kind, "extension_name", "")) == "arrow.fixed_shape_tensor"
