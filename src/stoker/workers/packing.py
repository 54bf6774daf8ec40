"""Packing: a job as bytes, by cloudpickle, its arrays out of band. Where the bytes are put is the backend's business.

Classes and functions of ``__main__`` (scripts, notebooks) travel by value, so nobody need import ``__main__`` again.
"""

from __future__ import annotations

import io
import pickle
import sys
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, NamedTuple

import cloudpickle
import numpy as np

from stoker.collation.tensors import array_as_tensor, is_plain_tensor, is_tensor, tensor_as_array, tensor_dtype
from stoker.errors import ShippingError
from stoker.interrupts import is_interrupt, let_in
from stoker.workers.culprit import path_to
from stoker.workers.imports import unpacking
from stoker.workers.worker import Job


class PackedJob(NamedTuple):
    """A pickled job, and the arrays that it refers to, which are still the user's own.

    ``modules``: those that it needs, which are worth importing early.
    """

    pickled: memoryview
    arrays: list[memoryview]
    modules: tuple[str, ...]


def pack(job: Job, shared: Callable[[Any], Any], *, to: str = "worker processes") -> PackedJob:
    """``shared``: how to pickle what workers can have in common with this process; NotImplemented for all else. ``to``:
    who gets it, for messages.

    Raises:
        ShippingError: It cannot be pickled.
    """
    stream, buffers = io.BytesIO(), list[pickle.PickleBuffer]()
    pickler = _Pickler(stream, shared, protocol=5, buffer_callback=buffers.append)
    try:
        with let_in():  # it may take long
            pickler.dump(job)
    except Exception as error:
        if is_interrupt(error):
            raise
        raise _unpicklable(job, pickler.last, error, to) from error
    # Not getbuffer(): Python 3.12 crashes where it comes to free the stream before what it has lent.
    pickled = memoryview(stream.getvalue())
    return PackedJob(pickled, [buffer.raw() for buffer in buffers], tuple(sorted(pickler.modules)))


def unpack(pickled: memoryview, arrays: Iterable[memoryview]) -> Job:
    """The job, in a worker. Its modules are imported now, if they were not before."""
    with unpacking():
        job: Job = pickle.loads(pickled, buffers=arrays)
    return job


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Notes which modules the job needs, and keeps big things from being copied."""

    def __init__(self, file: Any, shared: Callable[[Any], Any], **kwargs: Any) -> None:
        super().__init__(file, **kwargs)
        self._shared = shared
        self.modules: set[str] = set()
        self.last: Any = None  # what it came to, to be named if it cannot be pickled

    def reducer_override(self, obj: Any) -> Any:
        self.last = obj
        self._note(obj)
        reduced = self._shared(obj)
        if reduced is not NotImplemented:
            return reduced
        if is_tensor(obj) and is_plain_tensor(obj):
            return _own_tensor, (tensor_as_array(obj.contiguous()), tensor_dtype(obj))
        if type(obj) is io.TextIOWrapper and obj not in (sys.stdout, sys.stderr):
            raise TypeError(f"cannot pickle an open file, {obj.name!r}")  # cloudpickle would send all that is in it
        return super().reducer_override(obj)

    def _note(self, obj: Any) -> None:
        if isinstance(obj, ModuleType):
            name = obj.__name__
        elif isinstance(obj, type | FunctionType | BuiltinFunctionType):
            name = obj.__module__
        else:
            name = type(obj).__module__
        if name and name not in self.modules and name != "__main__" and name in sys.modules:
            self._by_value_if_not_importable(name)
            self.modules.add(name)

    def _by_value_if_not_importable(self, name: str) -> None:
        """A module that only exists in this process (made by a tool, or loaded from a file by hand) travels too."""
        try:
            importable = find_spec(name) is not None
        except (ImportError, ValueError, AttributeError):
            importable = name in sys.builtin_module_names
        if not importable and name not in cloudpickle.list_registry_pickle_by_value():
            cloudpickle.register_pickle_by_value(sys.modules[name])


def _own_tensor(array: np.ndarray[Any, Any], dtype: str) -> Any:
    """Torch knows no memory that must not be written, so a tensor is copied out of it."""
    return array_as_tensor(array if array.flags.writeable else array.copy(), dtype)


def _unpicklable(job: Job, last: Any, error: Exception, to: str) -> ShippingError:
    """``last``: what the pickler had come to."""
    dataset = job.source.content
    what = f"the dataset ({_name(dataset)}{_kind(last, dataset)})"
    for role, part in (("the dataset", dataset), ("collate", job.collate), ("init", job.init)):
        if part is not None and (found := path_to(last, part, _name(part))):
            what = f"{role} ({found}{_kind(last, part)})"
            break
    return ShippingError(
        f"{what} cannot be pickled, so it cannot be sent to {to}: {type(error).__name__}: {error}. {_remedy(error)}"
    )


def _remedy(error: Exception) -> str:
    if "SemLock created in a fork context" in str(error):
        return (
            "Make it with multiprocessing.get_context('spawn').Value(...) (or Array, Lock, Queue), which worker "
            "processes can find by its name; or pass lock=False to Value or Array; or use "
            "workers=stoker.Processes(n, start='fork')"
        )
    return (
        "Pass a class or functools.partial(Dataset, ...), which is called in each worker; or open such things in "
        "__getitem__ when first needed; or use workers=stoker.Threads(n) or stoker.Processes(n, start='fork')"
    )


def _name(thing: Any) -> str:
    return str(getattr(thing, "__qualname__", type(thing).__name__))


def _kind(found: Any, whole: Any) -> str:
    return "" if found is whole else f", a {type(found).__name__}"
