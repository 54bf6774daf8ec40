"""``Loader`` and what runs one: ``load`` and ``load_with_workers``."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import stoker
from stoker.compat.arguments import check_flag, checked_count, own_cores

_METHODS = ("make_request", "load", "post_process", "shutdown")


class Loader:
    """What is done with an item, and where. Derive your own class from it, which must define ``load``."""

    def make_request(self, item: Any) -> Any:
        """Called in your process: returns what the worker shall get, which must pickle. By default the item itself."""
        return item

    def load(self, request: Any) -> Any:
        """Called in a worker: returns a tuple of arrays, of any shape and dtype, or any other tree of them."""
        raise NotImplementedError(
            f"{type(self).__name__} has no load(request): define one that returns a tuple of arrays"
        )

    def post_process(self, response: Any) -> Any:
        """Called in your process: returns what the loop gets. By default each array becomes a tinygrad tensor.

        The arrays of ``response`` do not change while you hold them, so there is no need to copy them.
        """
        return stoker.convert(response, to="tinygrad")

    def shutdown(self) -> None:
        """Called in your process once, when the loading has ended, also after an error."""


class SharedMemoryShim(Loader):
    """Wraps a loader, and limits how many items are in work at a time. Results are always in shared memory.

    Args:
        loader: The loader.
        smm: A ``SharedMemoryManager``, or anything else: it is not used.
        memory_pool_block_count: The number of items that are in work or done ahead, of all workers together, but at
            least one for each worker. None: two for each worker.
    """

    def __init__(self, loader: Loader, smm: Any = None, memory_pool_block_count: int | None = None) -> None:
        self.loader = _checked_loader(loader)
        self.memory_pool_block_count = _checked_blocks(memory_pool_block_count)

    def make_request(self, item: Any) -> Any:
        return self.loader.make_request(item)

    def load(self, request: Any) -> Any:
        return self.loader.load(request)

    def post_process(self, response: Any) -> Any:
        return self.loader.post_process(response)

    def shutdown(self) -> None:
        self.loader.shutdown()


class Results:
    """The iterator over the results, and a context manager. It is closed, too, when it is garbage collected."""

    def __init__(self, stream: stoker.Stream[Any], shutdown: Callable[[], None]) -> None:
        self._stream = stream
        self._end = weakref.finalize(self, _end, stream, shutdown, os.getpid())

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        try:
            return next(self._stream)
        except StopIteration:
            self.close()
            raise

    def close(self) -> None:
        """Stops the workers, and calls the loader's ``shutdown``. May be called twice."""
        self._end()

    def __enter__(self) -> Results:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def load(loader: Loader, items: Iterable[Any]) -> Results:
    """Loads the items in this process, each when you ask for it.

    Example:
        >>> import numpy as np
        >>> from stoker.compat.tinyloader import Loader, load
        >>> class Squares(Loader):
        ...     def load(self, request):
        ...         return np.array(request), np.array(request**2)
        ...     def post_process(self, response):
        ...         return tuple(array.item() for array in response)
        >>> list(load(Squares(), [1, 2, 3]))
        [(1, 1), (2, 4), (3, 9)]
    """
    return _results(loader, items, workers=0)


def load_with_workers(
    loader: Loader,
    items: Iterable[Any],
    num_worker: int | None = None,
    shared_memory_enabled: bool = False,
    memory_pool_block_count: int | None = None,
) -> Results:
    """Loads the items in worker processes, and yields the results in the order of the items.

    Args:
        loader: What is done with an item. It is sent to each worker once, and must pickle.
        items: Any iterable, also an endless one. Items are pulled no further ahead than they are loaded.
        num_worker: The number of worker processes. None: one for each CPU.
        shared_memory_enabled: Checked, but has no effect: results are always in shared memory.
        memory_pool_block_count: As in ``SharedMemoryShim``, whose own value it overrides.

    Raises:
        TypeError: A wrong type, or a loader that lacks a method.
        ValueError: A wrong value.
        NotImplementedError: A loader without a ``load`` of its own.
        ImportError: A loader without a ``post_process`` of its own needs tinygrad.
    """
    count = own_cores() if num_worker is None else checked_count("num_worker", num_worker)
    check_flag("shared_memory_enabled", shared_memory_enabled)
    blocks = _checked_blocks(memory_pool_block_count)
    if blocks is None and isinstance(loader, SharedMemoryShim):
        blocks = loader.memory_pool_block_count
    ahead = {} if blocks is None else {"prefetch": max(1, blocks // count)}
    return _results(loader, items, workers=count, **ahead)


def _results(loader: Loader, items: Iterable[Any], **how: Any) -> Results:
    _checked_loader(loader)
    if not hasattr(items, "__iter__") and not hasattr(items, "__getitem__"):
        raise TypeError(f"items={items!r}: pass an iterable, such as a list, or a generator, which may be endless")
    stream = stoker.stream(loader.load, map(loader.make_request, items), to=_destination(loader), **how)
    return Results(stream, loader.shutdown)


def _destination(loader: Loader) -> Any:
    """Of results: the way that ``Loader.post_process`` goes is shorter if the stream itself goes it."""
    if isinstance(loader, SharedMemoryShim):
        return _destination(loader.loader)
    return "tinygrad" if _is_inherited(loader, "post_process") else loader.post_process


def _is_inherited(loader: Loader, method: str) -> bool:
    return getattr(getattr(loader, method), "__func__", None) is getattr(Loader, method)


def _checked_loader(loader: Any) -> Loader:
    missing = [name for name in _METHODS if not callable(getattr(loader, name, None))]
    if isinstance(loader, type) or missing:
        lack = "is a class" if isinstance(loader, type) else f"has no {' and no '.join(missing)}"
        raise TypeError(f"loader={loader!r} {lack}: pass an object of a class derived from {__name__}.Loader")
    if _is_inherited(loader, "load"):
        loader.load(None)  # says what to write
    return loader  # type: ignore[no-any-return]


def _checked_blocks(count: Any) -> int | None:
    return None if count is None else checked_count("memory_pool_block_count", count)


def _end(stream: stoker.Stream[Any], shutdown: Callable[[], None], owner: int) -> None:
    """A forked child has a copy of all this, but the workers and what the loader has opened are its parent's."""
    if os.getpid() != owner:
        return
    try:
        stream.close()
    finally:
        shutdown()
