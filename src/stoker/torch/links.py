"""Links between a dataset and the training process: through them it may wait for what the training does."""

from __future__ import annotations

import ctypes
import functools
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
)
_FEW = 16  # elements of a container that are looked at,
_MANY = 1000  # and objects in all


def has_links(*owners: Any) -> bool:
    """Whether any of them has a queue, a value, a lock or the like of ``multiprocessing``, as far as one can see.

    Batches of such a dataset are made one at a time: if the second of two waits for what the training does with the
    first, that must not wait for both.
    """
    waiting, seen = deque(owners), set[int]()
    while waiting and len(seen) < _MANY:
        thing = waiting.popleft()
        if isinstance(thing, _LINKS):
            return True
        if id(thing) not in seen:
            seen.add(id(thing))
            waiting.extend(_parts(thing))
    return False


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
    return chain(members.values(), methods)


def _known_to(function: FunctionType) -> Iterable[Any]:
    """What it finds outside of itself: in a closure; or links under a global name, as there is no end to others."""
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # it is still empty
            continue
    names = function.__globals__
    yield from (names[name] for name in function.__code__.co_names if isinstance(names.get(name), _LINKS))
