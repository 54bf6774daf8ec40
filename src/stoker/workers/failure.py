"""Errors that cross a process border and keep their type, their attributes and the worker's traceback."""

from __future__ import annotations

import os
import pickle
import traceback
from typing import Any, NamedTuple

from stoker.memory.codec import dumps


class _Parts(NamedTuple):
    """An exception in pieces, for those that cannot be pickled whole."""

    cls: type[BaseException]
    args: tuple[Any, ...]
    attributes: dict[str, Any]


def pack_error(error: BaseException) -> bytes:
    """The error and its traceback as bytes that ``unpack_error`` will surely be able to read."""
    text = "".join(traceback.format_exception(error)).rstrip()
    remote = f"stoker: the worker's own traceback (process {os.getpid()}):\n{text}"
    if _survives(error) and str(_copy(error)) == str(error):
        return dumps((error, remote))
    return dumps((_parts(error), remote))


def unpack_error(packed: bytes | memoryview) -> BaseException:
    shipped, remote = pickle.loads(packed)
    error: BaseException = _rebuilt(shipped) if isinstance(shipped, _Parts) else shipped
    error.add_note(remote)
    return error


def ordinary(error: BaseException) -> Exception:
    """A StopIteration out of ``dataset[i]`` would silently end the consumer's loop, a SystemExit its program."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    told = RuntimeError(f"dataset or collate raised {error!r}")
    told.__cause__ = error
    return told


def error_line(error: BaseException) -> str:
    """Type and message, as they are logged and written down."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # of its own __str__
        return f"{type(error).__name__}: <exception str() failed>"  # as Python itself has it


def _copy(value: Any) -> Any:
    return pickle.loads(dumps(value))


def _survives(value: Any) -> bool:
    try:
        return type(_copy(value)) is type(value)
    except Exception:
        return False


def _parts(error: BaseException) -> _Parts:
    """The nearest class that can travel, and those arguments and attributes that can."""
    cls = next(base for base in type(error).__mro__ if _class_survives(base))
    args = error.args if _survives(error.args) else (str(error),)
    if cls is not type(error):
        args = (f"{type(error).__qualname__}: {error}",)
    return _Parts(cls, args, {key: value for key, value in vars(error).items() if _survives(value)})


def _class_survives(cls: type) -> bool:
    try:
        return issubclass(_copy(cls), BaseException)
    except Exception:
        return False


def _rebuilt(parts: _Parts) -> BaseException:
    """Made without its constructor, whose arguments we do not know."""
    try:
        error = parts.cls.__new__(parts.cls, *parts.args)
    except Exception:
        error = BaseException.__new__(parts.cls)
    error.args = parts.args
    error.__dict__.update(parts.attributes)
    return error
