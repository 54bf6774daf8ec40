"""Samples that are read again, for ``retry=`` of the drop-in."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable
from typing import Any

import stoker
from stoker.torch import draws


class Retried:
    """A map-style dataset, for whoever fetches samples of it: what fails in a way that may pass is called again.

    Args:
        dataset: The user's.
        retry: How often, and after which errors.
        on_retry: Is called before each time that something is tried again.
    """

    def __init__(self, dataset: Any, retry: stoker.Retry, on_retry: Callable[[], object]) -> None:
        self._dataset, self._retry, self._on_retry = dataset, retry, on_retry
        self._luck = random.Random()  # not the generator that the dataset draws from
        if getattr(dataset, "__getitems__", None):  # where torch's fetcher looks for it
            self.__getitems__ = lambda indices: self._called(dataset.__getitems__, indices)

    def __getitem__(self, index: Any) -> Any:
        return self._called(self._dataset.__getitem__, index)

    def _called(self, function: Callable[[Any], Any], argument: Any) -> Any:
        """What it returns, with the random numbers that it would draw if it had not failed before."""
        before, times = draws.captured(()), self._retry.times
        for nth in range(times):
            try:
                return function(argument)
            except self._retry.on:
                time.sleep(self._retry.wait(nth, self._luck.random()))
            self._on_retry()
            draws.set_shared(before)
        try:
            return function(argument)
        except self._retry.on as error:
            with contextlib.suppress(Exception):  # of a class that has other ideas of notes
                error.add_note(f"stoker: it was tried {times + 1} times")
            raise


def checked_retry(retry: int | stoker.Retry, *, is_iterable: bool) -> stoker.Retry | None:
    """What the user has passed; None if nothing is tried again.

    Raises:
        TypeError: It is no number, and no ``Retry``.
        ValueError: It is out of range; or the dataset is iterable.
    """
    checked = retry if isinstance(retry, stoker.Retry) else stoker.Retry(retry)
    if not checked.times:
        return None
    if is_iterable:
        raise ValueError(
            f"retry={retry!r} with an IterableDataset: an iterator that has raised may be over, so nothing can be "
            f"asked of it again. Leave retry out, and try again within __iter__"
        )
    return checked
