"""Links between a dataset and the training process: through them it may wait for what the training does."""

from __future__ import annotations

import ctypes
import functools
import socket
from collections import deque
from collections.abc import Iterable
from itertools import chain, islice
from multiprocessing import connection, managers, queues, sharedctypes, synchronize
from types import FunctionType, MethodType, ModuleType
from typing import Any

import torch

_LINKS = (
    queues.Queue,
    queues.SimpleQueue,
    synchronize.SemLock,
    synchronize.Condition,
    synchronize.Event,
    sharedctypes.SynchronizedBase,
    connection._ConnectionBase,
    managers.BaseProxy,
    ctypes._SimpleCData,
    ctypes.Array,
    socket.socket,
)
_FEW = 16  # elements of a container that are looked at,
_MANY = 1000  # and objects in all
_SIGNAL = 1024  # elements of a shared tensor: more are data


def has_links(*owners: Any) -> bool:
    """Whether any of them has a queue, a value, a lock or the like of ``multiprocessing``, as far as one can see.

    Or a socket, or a small tensor in shared memory, in which the training may note how far it is.

    Batches of such a dataset are made one at a time: if the second of two waits for what the training does with the
    first, that must not wait for both.
    """
    waiting, seen = deque(owners), set[int]()
    while waiting and len(seen) < _MANY:
        thing = waiting.popleft()
        if isinstance(thing, _LINKS) or _is_signal(thing):
            return True
        if id(thing) not in seen:
            seen.add(id(thing))
            waiting.extend(_parts(thing))
    return False


def _is_signal(thing: Any) -> bool:
    is_plain = type(thing) is torch.Tensor and thing.layout is torch.strided and thing.device.type == "cpu"
    return is_plain and thing.numel() <= _SIGNAL and thing.is_shared()


def _is_epoch(name: str, value: Any) -> bool:
    """Its number, as Hugging Face's datasets share it, is the same from the first batch of it to the last."""
    return name.endswith("epoch") and isinstance(value, torch.Tensor)


def _parts(thing: Any) -> Iterable[Any]:
    if isinstance(thing, dict):
        return islice(thing.values(), _FEW)
    if isinstance(thing, list | tuple | set | frozenset | deque):
        return islice(thing, _FEW)
    if isinstance(thing, FunctionType):
        return _known_to(thing)
    if isinstance(thing, MethodType):
        return thing.__self__, thing.__func__
    if isinstance(thing, functools.partial):
        return thing.func, thing.args, thing.keywords
    members = getattr(thing, "__dict__", None)
    if isinstance(thing, torch.Tensor | type | ModuleType) or not isinstance(members, dict):
        return ()
    methods = (value for value in vars(type(thing)).values() if isinstance(value, FunctionType))
    return chain((value for name, value in members.items() if not _is_epoch(name, value)), methods)


def _known_to(function: FunctionType) -> Iterable[Any]:
    """What it finds outside of itself: in a closure; or links under a global name, as there is no end to others."""
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # it is still empty
            continue
    names = function.__globals__
    known = (names.get(name) for name in function.__code__.co_names)
    yield from (value for value in known if isinstance(value, _LINKS) or _is_signal(value))
