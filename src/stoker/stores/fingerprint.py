"""What a dataset is, as text: its class and its arguments. The same text, the same dataset; another, another cache."""

from __future__ import annotations

import functools
import inspect
import mmap
import os
from collections.abc import Iterator, Mapping
from types import CellType, CodeType, FunctionType
from typing import Any

import numpy as np
import xxhash

from stoker.collate.tensors import is_tensor, tensor_as_array

_BRIEF = 120  # characters of a value; what is longer is told by its checksum,
_WHOLE = 2000  # and so are more characters in all
_WHOLE_BYTES = 2**28  # of an array; of a bigger one, pieces are hashed, since to read it all would take seconds
_PIECES = 64
_DEPTH = 8  # of values within values
_PLAIN = (str, bytes, int, float, complex, bool, type(None), os.PathLike, np.generic, range, slice)


def describe(value: Any, depth: int = 0) -> str:
    """What a value is. Of an object: its class, and those arguments of its constructor that it keeps by their names."""
    if depth > _DEPTH:
        return "..."
    if isinstance(value, _PLAIN):
        text = repr(value)
    elif isinstance(value, np.ndarray) or is_tensor(value):
        text = _array(tensor_as_array(value) if is_tensor(value) else value, depth)
    elif isinstance(value, functools.partial):
        text = _call(describe(value.func, depth + 1), value.args, value.keywords, depth)
    elif isinstance(value, type):
        text = f"{value.__module__}:{value.__qualname__}"
    elif callable(value) and hasattr(value, "__qualname__"):
        text = _function(value, depth)
    elif isinstance(value, list | tuple | set | frozenset | Mapping):
        text = _collection(value, depth)
    else:
        text = _call(describe(type(value)), (), dict(_arguments(value)), depth)
    most = _BRIEF if depth else _WHOLE
    return text if len(text) <= most else f"{text[: most // 2]}...#{_digest(text.encode())}"


def _digest(*pieces: Any) -> str:
    digest = xxhash.xxh3_64()
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()


def _array(array: Any, depth: int) -> str:
    kind = f"array({array.dtype}, {array.shape}, "
    if isinstance(array, np.memmap) and array.filename is not None:
        status = os.stat(array.filename)
        file = f"{os.fspath(array.filename)!r} of {status.st_size} bytes, written {status.st_mtime_ns}"
        return f"{kind}{file}, from byte {_first_byte(array)} by {array.strides})"
    if array.dtype.hasobject:
        return f"{kind}{describe(array.tolist(), depth + 1)})"
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    if flat.nbytes <= _WHOLE_BYTES:
        return f"{kind}#{_digest(flat)})"
    starts = np.linspace(0, flat.nbytes - _WHOLE_BYTES // _PIECES, _PIECES, dtype=np.int64)
    return f"{kind}#{_digest(*[flat[start : start + _WHOLE_BYTES // _PIECES] for start in starts.tolist()])})"


def _first_byte(array: Any) -> int:
    """Where in its file a mapped array begins: parts of one file are arrays of their own."""
    mapped_from = array.offset - array.offset % mmap.ALLOCATIONGRANULARITY
    address: int = np.frombuffer(array._mmap, np.uint8).ctypes.data
    return int(mapped_from + array.ctypes.data - address)


def _call(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], depth: int) -> str:
    told = [describe(arg, depth + 1) for arg in args]
    told += [f"{key}={describe(value, depth + 1)}" for key, value in kwargs.items()]
    return f"{name}({', '.join(told)})"


def _collection(values: Any, depth: int) -> str:
    name = type(values).__name__
    if isinstance(values, Mapping):
        told = [f"{describe(key, depth + 1)}: {describe(value, depth + 1)}" for key, value in values.items()]
    else:
        told = [describe(value, depth + 1) for value in values]
    if isinstance(values, set | frozenset):
        told.sort()
    return f"{name}({', '.join(told)})"


def _function(function: Any, depth: int) -> str:
    """By name; what names do not tell (a lambda, what a function defines) also by its code and what it encloses."""
    name = f"{function.__module__}:{function.__qualname__}"
    owner = getattr(function, "__self__", None)
    if owner is not None and not isinstance(owner, type) and not inspect.ismodule(owner):
        return f"{name} of {describe(owner, depth + 1)}"
    if not isinstance(function, FunctionType) or "<" not in name:
        return name
    known = [*(function.__closure__ or ()), function.__defaults__, function.__kwdefaults__]
    told = [_contents(one, depth) if isinstance(one, CellType) else describe(one, depth + 1) for one in known if one]
    return f"{name}#{_digest(*_code(function.__code__))}({', '.join(told)})"


def _contents(cell: CellType, depth: int) -> str:
    try:
        return describe(cell.cell_contents, depth + 1)
    except ValueError:  # not yet assigned
        return "nothing"


def _code(code: CodeType) -> Iterator[bytes]:
    yield code.co_code
    yield repr(code.co_names).encode()
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code(constant)
        elif isinstance(constant, frozenset):  # in another order in each process
            yield repr(sorted(map(repr, constant))).encode()
        else:
            yield repr(constant).encode()


def _arguments(thing: Any) -> Iterator[tuple[str, Any]]:
    try:
        names = list(inspect.signature(type(thing)).parameters)
    except (TypeError, ValueError):  # made in C, and does not tell
        return
    for name in names:
        for attribute in (name, f"_{name}"):
            try:
                value = inspect.getattr_static(thing, attribute)
            except AttributeError:
                continue
            if attribute in getattr(thing, "__dict__", {}) or inspect.isdatadescriptor(value):
                yield name, getattr(thing, attribute)
                break
