"""What is shared stays shared: values, arrays, locks and queues of ``multiprocessing``, shared tensors, mapped files.

But for the files, which are opened again by name, these travel as descriptors of this process, which a worker opens
again by way of ``/proc``. ``multiprocessing`` lets its objects be pickled only while a process is being started, and
asks whoever starts it to pass the descriptors on: ``Lending`` plays that part. Its semaphores can be found again by
their name, but for those of the "fork" context, which have none.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import mmap
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from stoker.collation.tensors import is_plain_tensor, is_tensor
from stoker.interrupts import put_off
from stoker.memory import Closing
from stoker.systems import IS_LINUX, not_here

_CTYPES = "multiprocessing.sharedctypes"
_OWNERS = ("multiprocessing.heap", "multiprocessing.connection", _CTYPES)


@dataclass(frozen=True)
class Lent:
    """A descriptor of another process. ``detach`` is what ``multiprocessing`` calls it."""

    pid: int
    fd: int
    access: int

    def detach(self) -> int:
        """A descriptor of one's own of the same file or pipe."""
        fd = os.open(f"/proc/{self.pid}/fd/{self.fd}", self.access | os.O_NONBLOCK | os.O_CLOEXEC)
        os.set_blocking(fd, True)
        return fd


class _Copy:
    """A copy of a descriptor, which is closed with it."""

    def __init__(self, fd: int) -> None:
        with put_off():  # until it is certain to be closed
            self.fd = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
            Closing.together(self, self.fd)


class Lending:
    """Copies of the descriptors that a pickled job refers to, kept open for workers that are still to come."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, ...], _Copy] = {}
        self._reducers: dict[type, Any] | None = None

    def DupFd(self, fd: int) -> Lent:
        if not IS_LINUX:
            raise not_here("sharing memory or pipes with worker processes", "pass workers=stoker.Threads(n)")
        return Lent(os.getpid(), fd, fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE)

    def duplicate_for_child(self, fd: int) -> int:
        """A copy; always the same one for the same file, however often a job is pickled."""
        about = os.fstat(fd)
        key = (about.st_dev, about.st_ino, fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE)
        if key not in self._kept:
            self._kept[key] = _Copy(fd)
        return self._kept[key].fd

    @contextlib.contextmanager
    def allowed(self) -> Iterator[None]:
        """Within, objects of ``multiprocessing`` can be pickled."""
        context: Any = sys.modules.get("multiprocessing.context")
        if context is None:  # then there are none
            yield
            return
        before = context.get_spawning_popen()
        self._reducers = None
        context.set_spawning_popen(self)
        try:
            yield
        finally:
            context.set_spawning_popen(before)

    def reduced(self, obj: Any) -> Any:
        """How to pickle something, if a worker can have it in common with us; else NotImplemented."""
        if type(obj) is np.memmap:
            return reduce_memmap(obj)
        if is_tensor(obj) and is_plain_tensor(obj) and obj.is_shared() and obj.numel():
            return self.tensor(obj)
        # How multiprocessing pickles its memory and connections, which only its own pickler is told.
        if self._reducers is None:
            reduction: Any = sys.modules.get("multiprocessing.reduction")
            known = {} if reduction is None else reduction.ForkingPickler(io.BytesIO()).dispatch_table
            self._reducers = {cls: reducer for cls, reducer in known.items() if reducer.__module__ in _OWNERS}
        reducer = self._reducers.get(type(obj))
        is_private = reducer is not None and reducer.__module__ == _CTYPES and not hasattr(obj, "_wrapper")
        return NotImplemented if reducer is None or is_private else reducer(obj)

    def tensor(self, tensor: Any) -> tuple[Any, tuple[Any, ...]]:
        """How to pickle a tensor in shared memory."""
        storage = tensor.untyped_storage()
        fd, nbytes = storage._share_fd_cpu_()
        where = tensor.storage_offset(), tuple(tensor.shape), tensor.stride()
        return _shared_tensor, (self.DupFd(self.duplicate_for_child(fd)), nbytes, tensor.dtype, *where)

    def close(self) -> None:
        self._kept.clear()


def reduce_memmap(array: Any) -> Any:
    """A memory-mapped file is opened again in the worker, not read into memory here. NotImplemented: it is none."""
    file = getattr(array, "filename", None) if type(array) is np.memmap else None
    if file is None or not array.flags.c_contiguous or array._mmap is None or not os.path.exists(file):
        return NotImplemented
    mapped_from = array.offset - array.offset % mmap.ALLOCATIONGRANULARITY
    within = array.ctypes.data - np.frombuffer(array._mmap, np.uint8).ctypes.data
    mode = "r+" if array.mode == "w+" else array.mode
    return np.memmap, (os.path.abspath(file), array.dtype, mode, mapped_from + within, array.shape)


def _shared_tensor(
    lent: Lent, nbytes: int, dtype: Any, offset: int, shape: tuple[int, ...], stride: tuple[int, ...]
) -> Any:
    import torch

    fd = lent.detach()
    try:
        storage = torch.UntypedStorage._new_shared_fd_cpu(fd, nbytes)
    finally:
        os.close(fd)
    return torch.empty(0, dtype=dtype).set_(storage, offset, shape, stride)
