"""Indexed (map-style) datasets: objects with ``__getitem__`` and ``__len__``, or what makes one."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

_MOST_JSON = 4096  # characters of arguments in a reference: it is written down with each sample that fails
_WANTED = "give an object with __getitem__ and __len__, or a class, functools.partial or function that makes one"


class SampleError(NamedTuple):
    """A sample that could not be read, and why."""

    sample: int
    error: BaseException


class Fetched(NamedTuple):
    """The samples of a batch, the indices they stand for, and the samples that were skipped."""

    samples: Sequence[Any]
    indices: Sequence[int]
    skipped: list[SampleError]


@dataclass(frozen=True)
class IndexedSource:
    """A dataset, or a factory of one, that can be sent to workers; ``open`` gives the dataset there."""

    dataset: Any
    is_factory: bool

    @classmethod
    def of(cls, dataset: Any) -> IndexedSource:
        """Checks what can be checked without making anything."""
        is_factory = _is_factory(dataset)
        maker = dataset.func if isinstance(dataset, functools.partial) else dataset
        if not is_factory:
            _check(type(dataset))
        elif isinstance(maker, type):
            _check(maker)
        return cls(dataset, is_factory)

    def reference(self) -> dict[str, Any]:
        """How another process could make the dataset, as JSON can hold it: its ``type``, or what to call (``make``)."""
        maker: Any = self.dataset
        args, kwargs = (), {}
        if isinstance(maker, functools.partial):
            args, kwargs, maker = maker.args, maker.keywords, maker.func
        if self.is_factory and _is_importable(maker) and _is_brief_json([list(args), kwargs]):
            return {"make": _name(maker), "args": list(args), "kwargs": kwargs}
        return {"type": _name(maker if self.is_factory and hasattr(maker, "__qualname__") else type(maker))}

    def open(self) -> Indexed:
        dataset = self.dataset() if self.is_factory else self.dataset
        if self.is_factory:
            _check(type(dataset))
        return Indexed(dataset)


def _name(thing: Any) -> str:
    return f"{thing.__module__}:{thing.__qualname__}"


def _is_importable(maker: Any) -> bool:
    """Whether its name leads to it, which is not so for lambdas, what functions define, and methods of objects."""
    found = sys.modules.get(getattr(maker, "__module__", None) or "__main__")
    if found is None or found.__name__ == "__main__":  # to import a script is to run it
        return False
    try:
        return bool(functools.reduce(getattr, maker.__qualname__.split("."), found) == maker)
    except AttributeError:
        return False


def _is_brief_json(value: Any) -> bool:
    """Whether JSON gives it back as it was (a tuple, for one, would come back as a list), and is not too long."""
    try:
        text = json.dumps(value)
        return len(text) <= _MOST_JSON and bool(json.loads(text) == value)
    except (TypeError, ValueError):
        return False


def _is_factory(dataset: Any) -> bool:
    if isinstance(dataset, type | functools.partial):
        return True
    return callable(dataset) and not hasattr(type(dataset), "__getitem__")


def _check(cls: type) -> None:
    for method in ("__getitem__", "__len__"):
        if not hasattr(cls, method):
            raise TypeError(f"dataset: {cls.__name__} has no {method}; {_WANTED}")


class Indexed:
    """A dataset that is open: fetches the samples of a batch."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self._getitems = getattr(dataset, "__getitems__", None)
        self.length = len(dataset)

    def sample(self, index: int) -> Any:
        """One sample, by itself."""
        try:
            return self._dataset[index]
        except Exception as error:
            error.add_note(f"stoker: dataset[{index}] raised it")
            raise

    def fetch(self, indices: Sequence[int]) -> Fetched:
        """All samples, or the first error, with the index in its notes where it is known."""
        if self._getitems is not None:
            return self._fetch_together(indices)
        left = iter(indices)
        dataset = self._dataset
        try:
            return Fetched([dataset[index] for index in left], indices, [])
        except Exception as error:
            failed = len(indices) - left.__length_hint__() - 1  # type: ignore[attr-defined]
            error.add_note(f"stoker: dataset[{indices[failed]}] raised it")
            raise

    def fetch_skipping(self, indices: Sequence[int]) -> Fetched:
        """The samples that can be read; the others are reported."""
        if self._getitems is not None:
            try:
                return self._fetch_together(indices)
            except Exception:
                pass  # one by one, then, to see which ones they are
        samples, good, skipped = [], [], []
        for index in indices:
            try:
                samples.append(self._dataset[index])
                good.append(index)
            except (Exception, SystemExit) as error:
                skipped.append(SampleError(index, error))
        return Fetched(samples, good, skipped)

    def _fetch_together(self, indices: Sequence[int]) -> Fetched:
        assert self._getitems is not None
        try:
            samples = self._getitems(list(indices))
        except Exception as error:
            error.add_note(f"stoker: dataset.__getitems__({_brief(indices)}) raised it")
            raise
        if len(samples) != len(indices):
            raise ValueError(
                f"dataset.__getitems__ gave {len(samples)} samples for {len(indices)} indices ({_brief(indices)}): "
                f"it must give one for each, in order"
            )
        return Fetched(samples, indices, [])


def _brief(indices: Sequence[int]) -> str:
    shown = ", ".join(map(str, indices[:4]))
    return f"[{shown}, ... {len(indices)} in all]" if len(indices) > 4 else f"[{shown}]"
