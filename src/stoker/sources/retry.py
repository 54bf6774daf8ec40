"""Retry: how often what failed is tried again, and after how long."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Call = Callable[..., Any]  # calls a function with arguments, perhaps more than once: call(function, *args, **kwargs)

_LONGEST_S = 60.0  # of any wait: who waits longer will hardly be luckier
_MOST_TIMES = 100
_REMEDY = "pass a number of times, or stoker.Retry(times=3, backoff=0.5, on=(OSError, TimeoutError))"


@dataclass(frozen=True)
class Retry:
    """How often a sample that could not be read is read again, for the ``retry`` of a loader or stream.

    Args:
        times: The number of times that it is tried again, after the first time.
        backoff: The number of seconds to wait before the first of them. Each later wait is twice as long as the one
            before, up to 60 s; of each, a random part of up to a half is left out, so that workers that failed together
            do not come back together.
        on: The class of exceptions after which it is tried again, or a tuple of such. Others are raised at once.

    Raises:
        TypeError: ``on`` is something else, or a number is none.
        ValueError: A number is out of range.

    Example:
        >>> import stoker
        >>> stoker.Retry(times=5, on=ConnectionError)
        Retry(times=5, backoff=0.5, on=(<class 'ConnectionError'>,))
    """

    times: int = 3
    backoff: float = 0.5
    on: type[Exception] | tuple[type[Exception], ...] = (OSError, TimeoutError)

    def __post_init__(self) -> None:
        if not isinstance(self.times, int) or isinstance(self.times, bool):
            raise TypeError(f"Retry(times={self.times!r}): {_REMEDY}")
        if not 0 <= self.times <= _MOST_TIMES:
            raise ValueError(f"Retry(times={self.times!r}): pass a number from 0 to {_MOST_TIMES}")
        if not isinstance(self.backoff, int | float) or isinstance(self.backoff, bool):
            raise TypeError(f"Retry(backoff={self.backoff!r}): pass a number of seconds")
        if not 0 <= self.backoff <= _LONGEST_S:
            raise ValueError(f"Retry(backoff={self.backoff!r}): pass a number of seconds from 0 to {_LONGEST_S:g}")
        classes = self.on if isinstance(self.on, tuple) else (self.on,)
        if not classes or not all(isinstance(one, type) and issubclass(one, Exception) for one in classes):
            raise TypeError(f"Retry(on={self.on!r}): pass a class of exceptions, or a tuple of such")
        object.__setattr__(self, "on", classes)

    def wait(self, nth: int, luck: float) -> float:
        """Seconds before the nth time that it is tried again, from 0 on. ``luck``: a random number from 0 to 1."""
        return min(self.backoff * 2.0**nth, _LONGEST_S) * (1.0 - luck / 2.0)


def checked_retry(retry: Any) -> Retry | None:
    """What the user has passed; None if nothing is tried again."""
    if isinstance(retry, bool) or not isinstance(retry, int | Retry):
        raise TypeError(f"retry={retry!r}: {_REMEDY}")
    if isinstance(retry, int):
        retry = Retry(retry)
    return retry if retry.times else None
