"""What a dataset was like when the workers got it, so that a change in the training process is noticed.

Two ways to look. ``Contents`` is for workers that have a copy of their own: everything that the dataset and the collate
function hold is compared, arrays by what is in them. ``Attributes`` is for workers that share the very object, and may
write into it themselves: only attributes that were assigned anew count.
"""

from __future__ import annotations

import ctypes
import gc
import logging
import pickle
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from time import perf_counter
from types import FunctionType, MethodType, ModuleType
from typing import Any, Protocol

import numpy as np

from stoker.collation.tensors import is_plain_tensor, is_tensor, tensor_as_array
from stoker.workers.piles import Pile, is_long, piled
from stoker.workers.worker import Job

log = logging.getLogger("stoker")

_SLOW_S = 1.0  # a look that takes longer than this, once an epoch, is worth a line in the log
_MOST_OBJECTS = 1000  # that are looked at for attributes of theirs: datasets wrap each other, a few deep
_SCALARS = (int, float, complex, str, bytes, bool, type(None))
_BY_IDENTITY = (type, ModuleType)
_C_MEMORY = (ctypes.Array, ctypes._SimpleCData, ctypes.Structure)


class Snapshot(Protocol):
    """What a job was like."""

    def differs(self, job: Job) -> bool:
        """Whether it has changed since."""


class Contents:
    """All that the dataset and collate hold, as a checksum. Reading it costs what pickling it costs, and 40 ms a GB
    of arrays. Classes and modules count by identity, functions by identity, closure and defaults."""

    def __init__(self, job: Job) -> None:
        self._checksum = _checksum(job)
        self._is_slow = False

    def differs(self, job: Job) -> bool:
        began = perf_counter()
        differs = _checksum(job) != self._checksum
        took = perf_counter() - began
        if took > _SLOW_S and not self._is_slow:
            self._is_slow = True
            log.warning(
                "Looking for changes in the dataset at the start of an epoch took %.1f s. Pass a class or "
                "functools.partial(Dataset, ...) instead of an object: workers call it, and no changes are looked for.",
                took,
            )
        return differs


class Attributes:
    """The attributes of the dataset, of collate, and of the objects that these have as attributes. Numbers and strings
    count by value, all else by identity."""

    def __init__(self, job: Job) -> None:
        self._seen = {key: _remembered(value) for key, value in _attributes(job)}

    def differs(self, job: Job) -> bool:
        now = dict(_attributes(job))
        if now.keys() != self._seen.keys():
            return True
        return not all(_is_same(self._seen[key], value) for key, value in now.items())


def _looked_at(job: Job) -> tuple[Any, Any]:
    """What may change. A class or partial is called in the workers and stays as it is."""
    return None if job.source.is_factory else job.source.content, job.collate


def _checksum(job: Job) -> bytes | None:
    """None where it cannot be told."""
    collects = gc.isenabled()
    try:
        # It makes thousands of objects and frees them at once, which would set off the garbage collector: one look in
        # some twenty, of a list of 4,096 tensors. With torch loaded, that takes 100 ms.
        gc.disable()
        return _first_checksum(job)
    finally:
        if collects:  # and no call before it, in which an interrupt could come up
            gc.enable()


def _first_checksum(job: Job) -> bytes | None:
    for looker in (_Looker, _TolerantLooker):
        try:
            return looker().look(*_looked_at(job))
        except Exception:  # of anybody's __reduce__; or a thread of the user's changes it just now
            continue
    return None


class _Looker(pickle.Pickler):
    """Pickles into a checksum: nobody will unpickle it, so what cannot travel is described by its identity."""

    def __init__(self) -> None:
        import xxhash  # when workers have been started: importing stoker shall be quick

        self._sum = xxhash.xxh3_128()
        self._objects = 0
        super().__init__(_Sink(self._sum.update), protocol=5, buffer_callback=self._note_buffer)

    def look(self, dataset: Any, collate: Any) -> bytes:
        self.dump((piled(dataset), collate))
        return self._sum.digest()

    def _note_buffer(self, buffer: pickle.PickleBuffer) -> None:
        with buffer.raw() as raw:
            self._sum.update(raw)

    def reducer_override(self, obj: Any) -> Any:
        if type(obj) is Pile:
            for piece in obj.contents():
                self._sum.update(piece)
            return _described, (obj.dtype, obj.shape, len(obj.arrays))
        array = _as_array(obj)
        if array is not None:  # first, as the dataset may have one for each sample
            self._note_array(array)
            return _described, (obj.dtype, array.shape, array.strides)
        if isinstance(obj, np.generic) and not obj.dtype.hasobject:
            return _described, (obj.dtype, obj.tobytes())
        if isinstance(obj, FunctionType) and obj is not _described:
            cells = [_content(cell) for cell in obj.__closure__ or ()]
            return _described, (id(obj), cells, obj.__defaults__, obj.__kwdefaults__, vars(obj))
        if isinstance(obj, _BY_IDENTITY) or _is_shared(obj):
            return _described, (id(obj),)
        if is_tensor(obj):
            return _described, (id(obj), self._tensor(obj))
        return self._with_piles(obj)

    def _tensor(self, tensor: Any) -> Any:
        """Of a parameter, or another that is no plain one: what is in it, as writes through ``.data`` are not counted.
        Where an array cannot hold that, how often torch has seen it written."""
        if tensor.is_cpu:
            with suppress(TypeError, ValueError, RuntimeError):  # sparse, quantized, not initialized
                array = tensor_as_array(tensor.detach())
                self._note_array(array)
                return tensor.dtype, array.shape, array.strides
        return tensor._version

    def _with_piles(self, obj: Any) -> Any:
        """How an object is reduced that has long lists among its attributes: a dataset, or one within another."""
        self._objects += 1
        if self._objects > _MOST_OBJECTS or not any(map(is_long, getattr(obj, "__dict__", {}).values())):
            return NotImplemented
        try:
            reduced = obj.__reduce_ex__(5)
        except Exception:  # it will come again
            return NotImplemented
        if type(reduced) is not tuple or len(reduced) < 3 or type(reduced[2]) is not dict:
            return NotImplemented
        state = {name: piled(value) for name, value in reduced[2].items()}
        return (*reduced[:2], state, *reduced[3:])

    def _note_array(self, array: Any) -> None:
        """All its elements, uncopied if they lie one after the other in either order, and are not dates."""
        try:
            self._sum.update(array)
        except ValueError:  # it gives no buffer
            try:
                self._sum.update(array.T)
            except ValueError:
                self._sum.update(array.tobytes())


class _TolerantLooker(_Looker):
    """The same, where something in it refuses to be pickled: a lock, a handle, a connection."""

    def reducer_override(self, obj: Any) -> Any:
        reduced = super().reducer_override(obj)
        if reduced is not NotImplemented or obj is _described:
            return reduced
        try:
            return obj.__reduce_ex__(5)
        except Exception:
            return _described, (id(obj),)


class _Sink:
    """Where a pickler writes to."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self.write = write


def _described(*what: Any) -> None:
    """Stands for something in a checksum."""


def _as_array(obj: Any) -> np.ndarray[Any, Any] | None:
    """An array or a tensor, if it is all there in its memory, and workers have a copy of that."""
    if type(obj) is np.ndarray:
        return None if obj.dtype.hasobject else obj
    if is_tensor(obj) and is_plain_tensor(obj) and not obj.untyped_storage().is_shared():
        return tensor_as_array(obj)
    return None


def _is_shared(obj: Any) -> bool:
    """Whether workers see what is in it anyway: a mapped file, memory of multiprocessing, a shared tensor."""
    if isinstance(obj, _C_MEMORY):
        return hasattr(obj, "_wrapper")
    if not is_tensor(obj):
        return isinstance(obj, np.memmap)
    try:
        return bool(obj.is_shared())
    except RuntimeError:  # a sparse one has no memory of its own
        return False


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it is still empty
        return None


def _attributes(job: Job) -> Iterator[tuple[tuple[int, str], Any]]:
    left = list(_looked_at(job))
    seen: set[int] = set()
    while left and len(seen) < _MOST_OBJECTS:
        owner = left.pop()
        if isinstance(owner, MethodType):
            owner = owner.__self__
        if id(owner) in seen or isinstance(owner, type | ModuleType | FunctionType):
            continue
        seen.add(id(owner))
        for name, value in list(getattr(owner, "__dict__", {}).items()):
            yield (id(owner), name), value
            if not isinstance(value, _SCALARS):
                left.append(value)


def _remembered(value: Any) -> Any:
    """As a weak reference where there are such, so that what the user lets go of is freed."""
    if isinstance(value, _SCALARS):
        return value
    try:
        return weakref.ref(value)
    except TypeError:
        return value


def _is_same(remembered: Any, value: Any) -> bool:
    if isinstance(remembered, weakref.ref) and not isinstance(value, weakref.ref):
        return remembered() is value
    if isinstance(value, _SCALARS):
        return type(remembered) is type(value) and remembered == value
    return remembered is value
