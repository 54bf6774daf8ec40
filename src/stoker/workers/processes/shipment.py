"""How a job travels: by cloudpickle, its arrays out of band in one sealed segment that all workers map.

So an in-memory dataset exists once however many workers there are, and classes and functions of ``__main__`` (scripts,
notebooks) travel by value, so that nobody need import ``__main__`` again.
"""

from __future__ import annotations

import io
import mmap
import os
import pickle
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import cloudpickle
import numpy as np

from stoker.collate.tensors import array_as_tensor, is_plain_tensor, is_tensor, tensor_as_array, tensor_dtype
from stoker.errors import ShippingError
from stoker.memory import Segment
from stoker.workers.worker import Job


@dataclass(frozen=True)
class Surroundings:
    """What code may expect around it and a fresh process would not have."""

    path: list[str]
    argv: list[str]
    folder: str
    environment: dict[str, str]

    @classmethod
    def here(cls) -> Surroundings:
        return cls(list(sys.path), list(sys.argv), os.getcwd(), dict(os.environ))

    def apply(self, own: Mapping[str, str]) -> None:
        """``own``: variables that this process has for itself."""
        sys.path[:] = self.path
        sys.argv[:] = self.argv
        os.chdir(self.folder)
        environment = self.environment | dict(own)
        os.environ.update(environment)
        for name in os.environ.keys() - environment.keys() - set(SINGLE_THREADED):
            del os.environ[name]


# Workers are many: a pool of threads in each only gets in the others' way. The user's own setting wins.
SINGLE_THREADED = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}


class Shipment:
    """A pickled job: made when the loader is, so that what can't travel is said early; written when it starts.

    Owns the segment: a loader that starts its workers anew ships the same one again.
    """

    def __init__(self, job: Job) -> None:
        self._segment: Segment | None = None
        self._buffers: list[pickle.PickleBuffer] = []
        stream = io.BytesIO()
        pickler = _Pickler(stream, protocol=5, buffer_callback=self._buffers.append)
        try:
            pickler.dump(job)
        except Exception as error:
            raise _unpicklable(job, error) from error
        self._pickled = stream.getbuffer()
        self.modules = tuple(sorted(pickler.modules))  # those worth importing before the fork

    def segment(self) -> Segment:
        """The job in shared memory: written once, and then the only copy that is kept."""
        if self._segment is None:
            around = memoryview(pickle.dumps(Surroundings.here()))
            self._segment = Segment.write([around, self._pickled, *[buffer.raw() for buffer in self._buffers]])
            self._pickled = memoryview(b"")
            self._buffers.clear()
        return self._segment

    def free(self) -> None:
        """Lets go of the segment; workers have it mapped for as long as they live."""
        if self._segment is not None:
            self._segment.close()


def load_job(segment: Segment, own: Mapping[str, str] | None = None) -> Job:
    """The job, unpacked in its surroundings. ``own``: environment variables of this worker, which win over those."""
    around, pickled, *buffers = segment.read()
    surroundings: Surroundings = pickle.loads(around)
    surroundings.apply(own or {})
    job: Job = pickle.loads(pickled, buffers=buffers)
    return job


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Notes which modules the job needs, and keeps big things from being copied."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.modules: set[str] = set()

    def reducer_override(self, obj: Any) -> Any:
        self._note(obj)
        if type(obj) is np.memmap:
            return _reduce_memmap(obj)
        if is_tensor(obj) and is_plain_tensor(obj):
            return array_as_tensor, (tensor_as_array(obj.contiguous()), tensor_dtype(obj))
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


def _reduce_memmap(array: Any) -> Any:
    """A memory-mapped file is opened again in the worker, not read into memory here."""
    file = getattr(array, "filename", None)
    if file is None or not array.flags.c_contiguous or array._mmap is None or not os.path.exists(file):
        return NotImplemented
    mapped_from = array.offset - array.offset % mmap.ALLOCATIONGRANULARITY
    within = array.ctypes.data - np.frombuffer(array._mmap, np.uint8).ctypes.data
    mode = "r+" if array.mode == "w+" else array.mode
    return np.memmap, (os.path.abspath(file), array.dtype, mode, mapped_from + within, array.shape)


def _unpicklable(job: Job, error: Exception) -> ShippingError:
    if job.collate is not None and not _pickles(job.collate):
        what = f"collate ({job.collate!r})"
    else:
        what = f"the dataset ({_culprit(job.source.dataset)})"
    return ShippingError(
        f"{what} cannot be pickled, so it cannot be sent to worker processes: {type(error).__name__}: {error}. "
        f"Pass a class or functools.partial(Dataset, ...), which is called in each worker; or open such things in "
        f"__getitem__ when first needed; or use workers=stoker.Threads(n) or stoker.Processes(n, start='fork')"
    )


def _culprit(dataset: Any) -> str:
    """The attribute that cannot travel, where it is one."""
    name = type(dataset).__name__
    for attribute, value in getattr(dataset, "__dict__", {}).items():
        if not _pickles(value):
            return f"{name}.{attribute}, a {type(value).__name__}"
    return name


def _pickles(value: Any) -> bool:
    try:
        _Pickler(io.BytesIO(), protocol=5, buffer_callback=lambda _: None).dump(value)
    except Exception:
        return False
    return True
