"""Selection: which columns are wanted of each file, and of which dtypes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from stoker.sources.files.columns import Column, Columns, rows_of, told
from stoker.sources.files.opening import needed
from stoker.sources.files.ragged import Array, Nullable, Ragged

_KINDS = "biufMmUSO"  # of dtypes: numbers, times, strings, bytes, objects
_EXACT = {"int64": int, "float64": float, "bool": bool}  # Python's own, out of which columns are gathered quickly


@dataclass(frozen=True)
class Dtype:
    """What the values of a column are to be.

    Attributes:
        base: Of each value; ``object``: Python's own objects, in a list.
        shape: Of each row, where that was said.
    """

    base: np.dtype[Any]
    shape: tuple[int, ...] = ()

    @classmethod
    def of(cls, name: str, given: Any) -> Dtype:
        """Raises ``TypeError`` for what is none."""
        try:
            dtype = np.dtype(given)
        except TypeError as error:
            raise TypeError(f"dtypes={{{name!r}: {given!r}}} is not a dtype: {error}") from None
        base, shape = dtype.subdtype or (dtype, ())
        if base.kind not in _KINDS or (shape and base.kind in "USO"):
            raise TypeError(
                f"dtypes={{{name!r}: {given!r}}}: pass a dtype of numbers or times, perhaps with a shape as in "
                f"('float32', 64), or str, bytes or object"
            )
        return cls(base, shape)

    @property
    def is_object(self) -> bool:
        return self.base.kind == "O"

    @property
    def is_text(self) -> bool:
        return self.base.kind in "US"

    def __str__(self) -> str:
        name = {"U": "str", "S": "bytes"}.get(self.base.kind) or str(self.base)
        return f"({name!r}, {self.shape})" if self.shape else name

    def without_first_axis(self) -> Dtype:
        return Dtype(self.base, self.shape[1:])

    def refuse(self, path: str, found: str) -> NoReturn:
        raise ValueError(f"column {path!r} is to be {self} and is {found}")

    def arrow_type(self) -> Any:
        pa = needed("pyarrow", "reading columns")
        return {"U": pa.string, "S": pa.binary}.get(self.base.kind, lambda: pa.from_numpy_dtype(self.base))()

    def cast_arrow(self, array: Any, path: str) -> Any:
        """No whole number is changed. Others are rounded, where they must be."""
        pa, pc = needed("pyarrow", "reading columns"), needed("pyarrow.compute", "reading columns")
        wanted, kind = self.arrow_type(), array.type
        if kind == wanted:
            return array
        is_short = wanted == pa.float16()  # which many of Arrow's versions can't cast to
        target, is_rounded = pa.float32() if is_short else wanted, self.base.kind in "fmM"
        options = pc.CastOptions(target, allow_float_truncate=is_rounded, allow_time_truncate=is_rounded)
        try:
            cast = array.cast(options=options)
            # Arrow itself makes True of all numbers but 0, and infinity of floats that are too big.
            is_same = self.base.kind not in "bf" or _is_same(pc, array, cast)
            if is_short and is_same:
                cast, is_same = _shortened(pa, cast)
        except Exception as error:  # of Arrow's own: a value that does not fit, or no way at all
            self.refuse(path, f"{kind}: {error}")
        return cast if is_same else self.refuse(path, f"{kind} with values that would be changed")

    def cast_column(self, column: Column, path: str) -> Column:
        """Of what was given as columns."""
        if isinstance(column, Columns | Nullable):
            self.refuse(path, "a column of another form")
        if self.is_object or self.is_text:
            return [self.cast_value(value, path) for value in rows_of(column)]
        if isinstance(column, Ragged) and not self.shape:
            return Ragged(self._cast_array(column.values, path), column.offsets, column.nulls)
        try:
            array = np.asarray(column if isinstance(column, np.ndarray) else self._filled(rows_of(column)))
        except ValueError as error:
            self.refuse(path, f"ragged: {error}")
        return self._shaped(self._cast_array(array, path), path, len(column))

    def cast_value(self, value: Any, path: str) -> Any:
        """Of one sample. None is NaN or NaT where there is such a value."""
        if self.is_object or (value is None and self.is_text):
            return value
        if self.is_text:
            return self._text(value, path)
        if isinstance(value, list | tuple | np.ndarray):
            array = self._cast_array(np.asarray(self._filled(value) if isinstance(value, list) else value), path)
            return array.reshape(self._checked(array.shape, path)) if self.shape else array
        array = self._cast_array(np.asarray(self._filled([value])), path)
        exact = _EXACT.get(str(self.base))
        return array[0] if exact is None else exact(array[0])

    def _text(self, value: Any, path: str) -> str | bytes:
        if self.base.kind == "U":
            return value if isinstance(value, str) else str(value)
        return value if isinstance(value, bytes) else self.refuse(path, f"of type {type(value).__name__}")

    def _filled(self, values: Sequence[Any]) -> Sequence[Any]:
        """With what stands for a missing value, where there is something that does."""
        if self.base.kind not in "fMm":
            return values
        missing = np.nan if self.base.kind == "f" else np.array("NaT", self.base)[()]
        return [missing if value is None else value for value in values]

    def _cast_array(self, array: Array, path: str) -> Array:
        if array.dtype == self.base:
            return array
        try:
            if self.base.kind in "mM" and array.dtype.kind in "UO":  # in their own unit, to see what the other does
                array = array.astype(f"{self.base.kind}8")
            with np.errstate(over="ignore"):
                cast = array.astype(self.base)
            is_same = _holds(cast, array)
        except (TypeError, ValueError, OverflowError) as error:
            self.refuse(path, f"{array.dtype}: {error}")
        if not is_same:
            self.refuse(path, f"{array.dtype} with values that would be changed")
        return cast

    def _shaped(self, array: Array, path: str, count: int) -> Array:
        return array.reshape(count, *self._checked(array.shape[1:], path)) if self.shape else array

    def _checked(self, shape: tuple[int, ...], path: str) -> tuple[int, ...]:
        if math.prod(shape) != math.prod(self.shape):
            self.refuse(path, f"of shape {shape}")
        return self.shape


def _shortened(pa: Any, floats: Any) -> tuple[Any, bool]:
    """As float16, by numpy; and whether none has become infinite."""
    numbers = floats.to_numpy(zero_copy_only=False)
    with np.errstate(over="ignore"):
        short = numbers.astype(np.float16)
    return pa.array(short, mask=floats.is_null().to_numpy(zero_copy_only=False)), _holds(short, numbers)


def _is_same(pc: Any, array: Any, cast: Any) -> bool:
    """Whether Arrow's booleans or floats are the numbers that they were made of, but for rounding."""
    if str(array.type) in ("string", "large_string", "string_view"):
        return True
    if str(cast.type) == "bool":
        return bool(cast.cast(array.type).equals(array))
    is_infinite = pc.is_inf(cast)
    return not pc.any(is_infinite).as_py() or bool(is_infinite.equals(pc.is_inf(array)))


def _holds(cast: Array, array: Array) -> bool:
    """Whether numpy has changed no value, but for rounding to a float or to a coarser time."""
    if cast.dtype.kind in "iub":
        return np.array_equal(cast, array)
    if cast.dtype.kind == "f" and array.dtype.kind in "biuf":
        is_infinite = np.isinf(cast)
        return not is_infinite.any() or np.array_equal(is_infinite, np.isinf(array))
    if cast.dtype.kind in "mM" and array.dtype.kind == cast.dtype.kind:  # too far away for a finer unit
        is_finer = np.result_type(cast, array) == cast.dtype
        return not is_finer or np.array_equal(cast.astype(array.dtype), array, equal_nan=True)
    return True


@dataclass(frozen=True)
class Selection:
    """The columns that are wanted, None for all, and the dtypes that some are to have.

    ``keeps_nulls``: numbers that are missing stay so, as whoever gets the batches has a place for them.
    """

    columns: tuple[str, ...] | None = None
    dtypes: Mapping[str, Dtype] = field(default_factory=dict)
    keeps_nulls: bool = False

    def __bool__(self) -> bool:
        return self.columns is not None or bool(self.dtypes)

    def check(self, names: Sequence[Any], *, dotted: bool = False) -> None:
        """Raises ``ValueError`` if something is wanted that is not there. ``dotted``: fields of structs are ``a.b``."""
        wanted = [*(self.columns or ()), *self.dtypes]
        there = set(names)
        for name in wanted:
            if name not in there and not (dotted and name.partition(".")[0] in there):
                raise ValueError(f"there is no column {name!r}: it has {told(names)}")

    def of_columns(self, given: Columns) -> Columns:
        """Of what was given as columns."""
        if not self:
            return given
        self.check(list(given.columns))
        found = {name: given.columns[name] for name in self.columns or given.columns}
        cast = {name: self._cast(name, column) for name, column in found.items()}
        return Columns(cast, given.gathered, given.kinds)

    def of_samples(self, pieces: Iterator[list[Any]]) -> Iterator[list[Any]]:
        """Of samples that are dicts."""
        number = 0
        for piece in pieces:
            yield [self._of_sample(sample, number + nth) for nth, sample in enumerate(piece)]
            number += len(piece)

    def _of_sample(self, sample: Any, number: int) -> Any:
        if not isinstance(sample, dict):
            raise ValueError(f"sample {number} has no columns: it is a {type(sample).__name__}")
        try:
            self.check(list(sample))
            found = {name: sample[name] for name in self.columns or sample}
            cast = {name: dtype.cast_value(found[name], name) for name, dtype in self.dtypes.items()}
        except ValueError as error:
            raise ValueError(f"sample {number}: {error}") from None
        return found | cast

    def _cast(self, name: Any, column: Column) -> Column:
        dtype = self.dtypes.get(name)
        return column if dtype is None else dtype.cast_column(column, name)
