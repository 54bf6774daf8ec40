"""Random numbers that belong to a batch: the same wherever, and however often, the batch is made.

Before each batch, ``random``, ``numpy.random`` and torch's default generator are seeded from (seed, epoch, position
of the batch); torch, where it is imported only in the middle of a batch, as soon as it is. What a library draws while
it is imported (JAX does) does not count, as it is imported once. A worker process seeds its own generators. Inline, the
user's generators are put back afterwards. In threads the generators are shared by all, so the functions of ``random``
and ``numpy.random`` get a generator a thread while thread workers exist, in these modules and in all that have imported
one by name; torch has no such seam, and draws from its default generator in threads are not reproducible.
"""

from __future__ import annotations

import contextlib
import random
import sys
import threading
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, NamedTuple, Protocol

import numpy as np

from stoker.workers.late_imports import ImportBracket, ImportWatch
from stoker.workers.numpy_generator import NumpyGenerator
from stoker.workers.python_generator import PythonGenerator

_ALIASES = {
    "ranf": "random_sample",
    "sample": "random_sample",
}  # functions of numpy.random that are no methods of its generator
_SEED_32 = 0xFFFFFFFF  # numpy's legacy generators take 32 bits


def seed_generators(seed: int) -> bool:
    """Seeds this process's generators, for good. Whether torch was among them: else it is not loaded."""
    random.seed(seed)
    np.random.seed(seed & _SEED_32)
    torch = _torch_generator()
    if torch is None:
        return False
    torch.manual_seed(seed)  # torch.manual_seed() looks for every kind of accelerator first, a hundred times slower
    return True


def _torch_generator() -> Any:
    """None where torch is not loaded, or another thread is just about to load it."""
    return getattr(sys.modules.get("torch"), "default_generator", None)


class GeneratorState(NamedTuple):
    """What will be drawn. ``torch`` is None where it was not loaded."""

    random: Any
    numpy: Any
    torch: Any = None

    @classmethod
    def of_process(cls) -> GeneratorState:
        torch = _torch_generator()
        return cls(random.getstate(), np.random.get_state(), None if torch is None else torch.get_state())

    def restore(self, seed: int) -> None:
        """``seed``: of torch, where it was loaded only meanwhile."""
        random.setstate(self.random)
        np.random.set_state(self.numpy)
        torch = _torch_generator()
        if torch is not None and self.torch is not None:
            torch.set_state(self.torch)
        elif torch is not None:
            torch.manual_seed(seed)


class Generators(Protocol):
    """The random generators that a worker's code draws from."""

    def lent(self) -> contextlib.AbstractContextManager[None]:
        """Within, they are the worker's to seed."""

    def seed(self, seed: int) -> None:
        """Within ``lent``: from now on, what is drawn follows from this seed."""

    def state(self) -> GeneratorState:
        """What will be drawn from now on."""

    def restore(self, state: GeneratorState) -> None:
        """It will be drawn again."""


def _bracket_of(generators: Generators, applies: Callable[[], bool]) -> ImportBracket:
    """What sees to it that imports leave them as they were."""

    @contextlib.contextmanager
    def around() -> Iterator[None]:
        state = generators.state()
        try:
            yield
        finally:
            generators.restore(state)

    return ImportBracket(around, applies)


class OwnGenerators:
    """Those of a process that is the worker's own."""

    def __init__(self) -> None:
        self._seed = 0
        self._watch: ImportWatch | None = None
        self._bracket: ImportBracket | None = None
        self._thread = 0  # that has seeded them

    def lent(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def seed(self, seed: int) -> None:
        self._seed = seed
        if not seed_generators(seed) and self._watch is None:
            self._watch = ImportWatch("torch", self._seed_torch)
            self._watch.start()
        if self._bracket is None:
            self._bracket = _bracket_of(self, self._is_mine)
            self._bracket.start()
            self._thread = threading.get_ident()

    def _is_mine(self) -> bool:
        return threading.get_ident() == self._thread

    def state(self) -> GeneratorState:
        return GeneratorState.of_process()

    def restore(self, state: GeneratorState) -> None:
        state.restore(self._seed)

    def _seed_torch(self) -> None:
        torch = _torch_generator()
        if torch is not None:
            torch.manual_seed(self._seed)


class BorrowedGenerators:
    """The user's own, whose state is put back at the end."""

    def __init__(self) -> None:
        self._seed = 0
        self._thread: int | None = None  # that has seeded them
        self._watch: ImportWatch | None = None
        self._bracket = _bracket_of(self, self._is_mine)
        self._random = PythonGenerator()
        self._numpy = NumpyGenerator()
        self._torch: Any = None  # where torch is imported meanwhile, that which it begins with

    def lent(self) -> contextlib.AbstractContextManager[None]:
        return self

    def __enter__(self) -> None:
        try:
            self._random.put_aside()
            torch = _torch_generator()
            if torch is not None:
                self._torch = torch.get_state()
            else:
                self._watch = ImportWatch("torch", self._seed_torch)
                self._watch.start()
            self._bracket.start()
            self._numpy.put_aside()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        self._thread = None
        self._bracket.stop()
        if self._watch is not None:
            self._watch.stop()
            self._watch = None
        self._random.put_back()
        self._numpy.put_back()
        if self._torch is not None:
            _torch_generator().set_state(self._torch)
            self._torch = None

    def seed(self, seed: int) -> None:
        self._seed = seed
        seed_generators(seed)
        self._thread = threading.get_ident()

    def _is_mine(self) -> bool:
        return threading.get_ident() == self._thread

    def state(self) -> GeneratorState:
        return GeneratorState.of_process()

    def restore(self, state: GeneratorState) -> None:
        state.restore(self._seed)

    def _seed_torch(self) -> None:
        torch = _torch_generator()
        if torch is not None:
            self._torch = torch.get_state()
            torch.manual_seed(self._seed)


class ThreadGenerators:
    """Gives each worker thread its own ``random`` and ``numpy.random`` while any loader has worker threads.

    The functions of these modules are methods of one hidden generator. They are replaced by functions that call the
    thread's own generator where there is one, and the hidden one everywhere else: in every module that has one, so also
    where it says ``from random import random``. Who holds one elsewhere (in an attribute, a default argument)
    draws from the hidden generator.
    """

    def __init__(self) -> None:
        self._own = threading.local()
        self._bracket = _bracket_of(self, lambda: getattr(self._own, "active", False))
        self._users = 0
        self._lock = threading.Lock()
        self._replaced: list[tuple[dict[str, Any], str, Any, Any]] = []  # where, which, what was there, what is now

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

    def state(self) -> GeneratorState:
        own = self._own
        if not getattr(own, "active", False):  # all threads draw from the same ones, and nobody can say which number
            return GeneratorState(None, None)
        return GeneratorState(own.random.getstate(), own.numpy.get_state())

    def restore(self, state: GeneratorState) -> None:
        if state.random is not None:
            self._own.random.setstate(state.random)
            self._own.numpy.set_state(state.numpy)

    def install(self) -> None:
        with self._lock:
            self._users += 1
            if self._users == 1:
                functions = {
                    **self._functions(random, "random", random.Random),
                    **self._functions(np.random, "numpy", np.random.RandomState),
                }
                self._replace({id(original): (original, draw) for original, draw in functions.values()})
                self._bracket.start()

    def uninstall(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._bracket.stop()
                for names, name, original, draw in self._replaced:
                    if names.get(name) is draw:  # else somebody has put something else there
                        names[name] = original
                self._replaced.clear()

    def _functions(self, module: ModuleType, attribute: str, generator: type) -> dict[str, tuple[Any, Any]]:
        """Each function of that module that draws from its hidden generator, and what to put in its place."""
        found = {}
        for name, function in vars(module).items():
            method = name if hasattr(generator, name) else _ALIASES.get(name, name)
            if name[0] != "_" and not isinstance(function, type) and callable(getattr(generator, method, None)):
                found[f"{attribute}.{name}"] = function, self._dispatching(attribute, method, function)
        return found

    def _replace(self, functions: dict[int, tuple[Any, Any]]) -> None:
        known = functions.keys()
        for names in _namespaces():
            if known.isdisjoint(map(id, list(names.values()))):  # so it is done with most in no time
                continue
            for name, value in list(names.items()):
                if id(value) in functions:
                    original, draw = functions[id(value)]
                    names[name] = draw
                    self._replaced.append((names, name, original, draw))

    def _dispatching(self, attribute: str, method: str, original: Any) -> Any:
        own = self._own

        def draw(*args: Any, **kwargs: Any) -> Any:
            if getattr(own, "active", False):
                return getattr(getattr(own, attribute), method)(*args, **kwargs)
            return original(*args, **kwargs)

        draw.__name__, draw.__doc__ = original.__name__, original.__doc__
        return draw


def _namespaces() -> Iterator[dict[str, Any]]:
    """The globals of all modules that are loaded, and none that would only be loaded by looking at it."""
    for module in list(sys.modules.values()):
        with contextlib.suppress(AttributeError):
            names = object.__getattribute__(module, "__dict__")
            if type(names) is dict:
                yield names


THREAD_GENERATORS = ThreadGenerators()  # one a process, as the modules it stands in for are
