"""Random numbers that belong to a batch: the same wherever, and however often, the batch is made.

Before each batch, ``random``, ``numpy.random`` and torch's default generator are seeded from (seed, epoch, place of
the batch). A worker process simply seeds its own generators. Inline, the user's generators are put back afterwards. In
threads the generators are shared by all, so ``random`` and ``numpy.random`` get a generator a thread while thread
workers exist; torch has no such seam, and draws from its default generator in threads are not reproducible.
"""

from __future__ import annotations

import contextlib
import random
import sys
import threading
from collections.abc import Iterator
from types import ModuleType
from typing import Any, Protocol

import numpy as np

_ALIASES = {
    "ranf": "random_sample",
    "sample": "random_sample",
}  # functions of numpy.random that are no methods of its generator
_SEED_32 = 0xFFFFFFFF  # numpy's legacy generators take 32 bits


def seed_generators(seed: int) -> None:
    """Seeds this process's generators, for good."""
    random.seed(seed)
    np.random.seed(seed & _SEED_32)
    torch = sys.modules.get("torch")
    if torch is not None:  # manual_seed() itself looks for every kind of accelerator first, a hundred times slower
        torch.default_generator.manual_seed(seed)


class Generators(Protocol):
    """The random generators that a worker's code draws from."""

    def lent(self) -> contextlib.AbstractContextManager[None]:
        """Within, they are the worker's to seed."""

    def seed(self, seed: int) -> None:
        """Within ``lent``: from now on, what is drawn follows from this seed."""


class OwnGenerators:
    """Those of a process that is the worker's own."""

    def lent(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def seed(self, seed: int) -> None:
        seed_generators(seed)


class BorrowedGenerators:
    """The user's own, whose state is put back at the end."""

    @contextlib.contextmanager
    def lent(self) -> Iterator[None]:
        torch = sys.modules.get("torch")
        kept = random.getstate(), np.random.get_state(), torch and torch.default_generator.get_state()
        try:
            yield
        finally:
            random.setstate(kept[0])
            np.random.set_state(kept[1])
            if torch is not None and kept[2] is not None:
                torch.default_generator.set_state(kept[2])

    def seed(self, seed: int) -> None:
        seed_generators(seed)


class ThreadGenerators:
    """Gives each worker thread its own ``random`` and ``numpy.random`` while any loader has worker threads.

    The functions of these modules are methods of one hidden generator. They are replaced by functions that call the
    thread's own generator where there is one, and the hidden one everywhere else.
    """

    def __init__(self) -> None:
        self._own = threading.local()
        self._users = 0
        self._lock = threading.Lock()
        self._replaced: list[tuple[ModuleType, str, Any]] = []

    @contextlib.contextmanager
    def lent(self) -> Iterator[None]:
        """For a worker thread: within, the modules' functions draw from generators of its own."""
        own = self._own
        if not hasattr(own, "random"):
            own.random, own.numpy = random.Random(), np.random.RandomState()
        own.active = True
        try:
            yield
        finally:
            own.active = False

    def seed(self, seed: int) -> None:
        self._own.random.seed(seed)
        self._own.numpy.seed(seed & _SEED_32)

    def install(self) -> None:
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._replace(random, "random", random.Random)
                self._replace(np.random, "numpy", np.random.RandomState)

    def uninstall(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                for module, name, function in self._replaced:
                    setattr(module, name, function)
                self._replaced.clear()

    def _replace(self, module: ModuleType, attribute: str, generator: type) -> None:
        for name, function in list(vars(module).items()):
            method = name if hasattr(generator, name) else _ALIASES.get(name, name)
            if name[0] != "_" and not isinstance(function, type) and callable(getattr(generator, method, None)):
                self._replaced.append((module, name, function))
                setattr(module, name, self._dispatching(attribute, method, function))

    def _dispatching(self, attribute: str, method: str, original: Any) -> Any:
        own = self._own

        def draw(*args: Any, **kwargs: Any) -> Any:
            if getattr(own, "active", False):
                return getattr(getattr(own, attribute), method)(*args, **kwargs)
            return original(*args, **kwargs)

        draw.__name__, draw.__doc__ = original.__name__, original.__doc__
        return draw


THREAD_GENERATORS = ThreadGenerators()  # one a process, as the modules it stands in for are
