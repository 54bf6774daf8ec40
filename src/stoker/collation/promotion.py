"""The common type of numbers, or of arrays, that differ: as numpy has it, but never at the cost of a digit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stoker.errors import CollateError

_EXACT = 2**53  # float64 holds every integer up to here
_INTEGERS = (int, np.integer)
_NUMBERS, _TIMES = "biufc", "mM"  # kinds of dtypes


def common_dtype(arrays: list[np.ndarray[Any, Any]], path: str, indices: Sequence[int]) -> np.dtype[Any]:
    """The type that holds all values of arrays of different types.

    Raises:
        CollateError: There is none: numbers beside text, integers that only float64 could hold and not exactly,
            dates that do not fit the finer unit.
    """
    dtypes = [array.dtype for array in arrays]
    kinds = {"n" if dtype.kind in _NUMBERS else dtype.kind for dtype in dtypes}
    try:
        dtype = np.result_type(*dtypes)
    except TypeError:
        raise _no_common_type(dtypes, path, indices) from None
    # Types of ml_dtypes are of kind V, and numpy knows what goes with them; records, which are too, go with no objects.
    if len(kinds) > 1 and ("V" not in kinds or "O" in kinds):
        raise _no_common_type(dtypes, path, indices)
    for array, index in zip(arrays, indices, strict=False):
        if array.dtype != dtype:
            lost = _first_lost(array, dtype)
            if lost is not None:
                raise _lossy(path, f"{lost} ({array.dtype})", index, dtype)
    return dtype


def numbers_as_array(values: list[Any], kinds: set[type], path: str, indices: Sequence[int]) -> np.ndarray[Any, Any]:
    """An array of these numbers, of ``kinds``; of objects, if numpy finds no other type for them.

    Raises:
        CollateError: An integer is too big for 64 bits, or to stand beside a float; or dates do not fit one unit.
    """
    try:
        array = np.array(values)
    except (TypeError, OverflowError):  # records of different fields; an int that no float is as big as
        array = np.empty(0, object)
    is_simple = array.dtype.kind in "fc" and not any(issubclass(kind, _INTEGERS) for kind in kinds)
    if is_simple or array.dtype.kind in "biu":  # the common case
        return array
    integers = [value for value in values if isinstance(value, int)]
    biggest = max(integers, key=abs, default=0)
    if not -(2**63) <= biggest < 2**64:
        raise _too_big(biggest, path)
    if array.dtype.kind == "f" and len(integers) == len(values):  # as numpy has it as soon as one is over 2**63
        if min(integers) < 0:
            raise _too_big(biggest, path, " beside negative ones")
        return np.array(values, np.uint64)
    _check(values, array, path, indices)
    return array


def _too_big(value: int, path: str, beside: str = "") -> CollateError:
    return CollateError(
        f"{path} holds an integer that does not fit 64 bits{beside} ({value}): give it as a string, "
        f"or pass your own collate=function(list of samples) -> batch"
    )


def _check(values: list[Any], array: np.ndarray[Any, Any], path: str, indices: Sequence[int]) -> None:
    """That the array has all of these values."""
    if array.dtype.kind in _TIMES or array.dtype.names:
        if len({getattr(value, "dtype", None) for value in values}) > 1:
            common_dtype([np.asarray(value) for value in values], path, indices)
    elif array.dtype.kind in "fc":
        for value, held, index in zip(values, array.real.tolist(), indices, strict=False):
            if isinstance(value, _INTEGERS) and int(held) != int(value):
                raise _lossy(path, str(value), index, array.dtype)


def _first_lost(array: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> Any:
    """A value of the array that is another in that type; None if there is none."""
    dtype = dtype.base  # fields may have a shape
    if array.dtype.names:
        lost = (_first_lost(array[name], dtype[name]) for name in array.dtype.names)
        return next((value for value in lost if value is not None), None)
    if array.dtype.kind in "iu" and dtype.kind in "fc":
        if array.dtype.itemsize < 8:
            return None
        big = array[(array > _EXACT) | (array < -_EXACT)]
        return next((value for value in big.tolist() if int(dtype.type(value).real) != value), None)
    if array.dtype.kind in _TIMES:
        return next((value for value in array.ravel() if not _is_time_of(value, dtype)), None)
    return None


def _is_time_of(value: Any, dtype: np.dtype[Any]) -> bool:
    """Whether a date or duration is the same in that unit: older numpys turn it into another without a word."""
    try:
        return bool(np.isnat(value) or value.astype(dtype).astype(value.dtype) == value)
    except OverflowError:
        return False


def _no_common_type(dtypes: list[np.dtype[Any]], path: str, indices: Sequence[int]) -> CollateError:
    other = next((k for k, dtype in enumerate(dtypes) if dtype.kind != dtypes[0].kind), None)
    if other is None:
        other = next(k for k, dtype in enumerate(dtypes) if dtype != dtypes[0])
    return CollateError(
        f"{path} is an array of {dtypes[0]} in sample {indices[0]} and of {dtypes[other]} in sample {indices[other]}, "
        f"which have no type in common: give arrays of one type, or pass your own collate=function(list of samples) "
        f"-> batch"
    )


def _lossy(path: str, value: str, index: int, dtype: np.dtype[Any]) -> CollateError:
    return CollateError(
        f"{path} is {value} in sample {index}, which {dtype}, the common type of the batch, cannot hold exactly: "
        f"give all samples one type that holds them (of integers, np.int64 or np.uint64; of dates, a coarser unit), "
        f"or pass your own collate=function(list of samples) -> batch"
    )
