"""Which worker it is that runs the user's code, for those who ask: ``stoker.worker_number()``."""

from __future__ import annotations

import threading
from types import TracebackType

_here = threading.local()  # threads may be workers, each of its own number


def worker_number() -> int | None:
    """The number of the worker that calls it, from 0 on, or None outside of workers.

    For code that runs in workers and must differ from one to another: ``init`` functions that choose a device or a
    part of the files, or a ``dataset`` that logs.

    Example:
        >>> import stoker
        >>> print(stoker.worker_number())
        None
        >>> with stoker.stream(lambda item: stoker.worker_number(), "abc", workers=stoker.Inline()) as numbers:
        ...     list(numbers)
        [0, 0, 0]
    """
    return getattr(_here, "number", None)


class acting_as:  # a context manager: quicker than a generator, and it is entered for each batch
    """Within, this thread is that worker."""

    __slots__ = ("_before", "_number")

    def __init__(self, number: int) -> None:
        self._number = number

    def __enter__(self) -> None:
        self._before = worker_number()
        _here.number = self._number

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        _here.number = self._before
