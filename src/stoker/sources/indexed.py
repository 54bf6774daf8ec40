"""Indexed (map-style) datasets: objects with ``__getitem__`` and ``__len__``, or what makes one."""

from __future__ import annotations

import contextlib
import functools
import inspect
import json
import operator
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any, NamedTuple

from stoker.errors import add_note
from stoker.plan.mixed import MixedIndices
from stoker.redaction import Redactor
from stoker.sources.gather import as_columns, gathered
from stoker.sources.kinds import is_mix
from stoker.sources.retry import Call
from stoker.sources.slow_samples import SlowSamples
from stoker.sources.tables import as_dataset, check_class

_MOST_JSON = 4096  # characters of arguments in a reference: it is written down with each sample that fails


IsInterrupt = Callable[[BaseException], bool]


def never_interrupted(_: BaseException) -> bool:
    """In a worker of its own, whatever its code raises is its own."""
    return False


class SampleError(NamedTuple):
    """A sample that could not be read, and why."""

    sample: int
    error: BaseException


class Fetched(NamedTuple):
    """The samples of a batch, the indices they stand for, and the samples that were skipped."""

    samples: Sequence[Any]
    indices: Sequence[int]
    skipped: list[SampleError]

    @classmethod
    def of(cls, each: Sequence[Any], indices: Sequence[int]) -> Fetched:
        """Of a sample, or a ``SampleError``, for each index."""
        if type(each) is not list or SampleError not in set(map(type, each)):
            return cls(each, indices, [])
        skipped = [one for one in each if type(one) is SampleError]
        good = [place for place, one in enumerate(each) if type(one) is not SampleError]
        return cls([each[place] for place in good], [indices[place] for place in good], skipped)


@dataclass(frozen=True)
class IndexedSource:
    """A dataset, or a factory of one, that can be sent to workers; ``open`` gives the dataset there.

    ``unit``: what the samples that a worker makes together are called in messages.
    """

    dataset: Any
    is_factory: bool
    unit: str = "batch"

    @classmethod
    def of(cls, dataset: Any) -> IndexedSource:
        """Checks what can be checked without making anything."""
        makes = is_factory(dataset)
        maker = dataset.func if isinstance(dataset, functools.partial) else dataset
        if not makes:
            dataset = as_dataset(dataset)
        elif isinstance(maker, type):
            check_class(maker)
        return cls(dataset, makes)

    def reference(self) -> dict[str, Any]:
        """How another process could make the dataset, as JSON can hold it: its ``type``, or what to call (``make``).

        Secrets among its arguments are redacted; ``redacted`` tells which, if there are any.
        """
        maker: Any = self.dataset
        args, kwargs = (), {}
        if isinstance(maker, functools.partial):
            args, kwargs, maker = maker.args, maker.keywords, maker.func
        if self.is_factory and _is_importable(maker) and _is_brief_json([list(args), kwargs]):
            redactor = Redactor()
            told = _redacted(redactor, maker, args, kwargs)
            return {"make": _name(maker), **told} | ({"redacted": redactor.names} if redactor.names else {})
        return {"type": _name(maker if self.is_factory and hasattr(maker, "__qualname__") else type(maker))}

    def secrets(self) -> set[str]:
        """Strings among its arguments, or what it keeps, that are to be redacted wherever they stand."""
        redactor, maker = Redactor(), self.dataset
        with contextlib.suppress(RecursionError):  # what refers to itself
            if isinstance(maker, functools.partial):
                _redacted(redactor, maker.func, maker.args, maker.keywords)
            elif not self.is_factory:
                _redacted(redactor, maker, (), getattr(maker, "__dict__", {}))
        return redactor.secrets

    @property
    def content(self) -> Any:
        """What travels, and may change."""
        return self.dataset

    def unit_name(self, epoch: int, nth: int) -> str:
        """What the nth unit of an epoch is called in messages."""
        return f"{self.unit} {nth} of epoch {epoch}"

    def open(self, call: Call | None = None) -> Indexed:
        """``call``: by which its samples are read; None: directly."""
        return Indexed(as_dataset(self._made()) if self.is_factory else self.dataset, call)

    def _made(self) -> Any:
        dataset = self.dataset()
        if is_mix(dataset):
            raise TypeError(
                "the dataset is a function that makes a Mix, and whose turn it is in a Mix must be known outside of "
                "the workers, too: pass the Mix itself"
            )
        return dataset


def _name(thing: Any) -> str:
    return f"{thing.__module__}:{thing.__qualname__}"


def _redacted(redactor: Redactor, maker: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments without the secrets in them. Those by position have the names that ``maker`` has for them."""
    try:
        names = list(inspect.signature(maker).parameters)
    except (TypeError, ValueError):  # made in C, and does not tell
        names = []
    names += [f"args[{k}]" for k in range(len(names), len(args))]
    told = [redactor.redacted(value, name, name) for name, value in zip(names, args, strict=False)]
    return {"args": told, "kwargs": {key: redactor.redacted(value, key, key) for key, value in kwargs.items()}}


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


def is_factory(dataset: Any) -> bool:
    """Whether it is no dataset, but makes one."""
    if isinstance(dataset, type | functools.partial):
        return True
    return callable(dataset) and not hasattr(type(dataset), "__getitem__")


class Indexed:
    """A dataset that is open: fetches the samples of a batch."""

    seed: int | None = None  # its batches have none of their own: it follows from their position

    def __init__(self, dataset: Any, call: Call | None = None) -> None:
        self._dataset = dataset
        self._call = call
        # What is tried again shall be one sample, where nothing is gained by asking for several.
        one_by_one = call is not None and getattr(dataset, "reads_one_by_one", False)
        self._getitems = None if one_by_one else getattr(dataset, "__getitems__", None)
        self.length = len(dataset)
        self.is_timed = False  # sample by sample, by its worker's wish
        self.slow: SlowSamples | None = None  # of the last samples that were timed, until the worker has seen them

    def on(self, item: Any) -> Indexed:
        """Itself: its batches are told by their position alone."""
        return self

    def sample(self, index: int) -> Any:
        """One sample, by itself."""
        try:
            return self._get(index)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            add_note(error, f"stoker: dataset[{index}] raised it")
            raise

    def fetch(self, indices: Sequence[int]) -> Fetched:
        """All samples, or the first error, with the index in its notes where it is known."""
        rows = gathered(self._dataset, indices)
        if rows is not None:
            return Fetched(rows, indices, [])
        if self._getitems is not None:
            return self._fetch_together(indices)
        left = iter(indices)
        dataset = self._dataset
        try:
            if self.is_timed:
                return Fetched(self._timed(left, indices), indices, [])
            if self._call is not None:
                return Fetched([self._get(index) for index in left], indices, [])
            return Fetched([dataset[index] for index in left], indices, [])
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            failed = len(indices) - left.__length_hint__() - 1  # type: ignore[attr-defined]
            add_note(error, f"stoker: dataset[{indices[failed]}] raised it")
            raise

    def fetch_skipping(self, indices: Sequence[int], is_interrupt: IsInterrupt = never_interrupted) -> Fetched:
        """The samples that can be read; the others are reported, but for an interrupt, which is raised."""
        return Fetched.of(self.each(indices, is_interrupt), indices)

    def each(self, indices: Sequence[int], is_interrupt: IsInterrupt = never_interrupted) -> Sequence[Any]:
        """For each index its sample, or a ``SampleError``."""
        rows = gathered(self._dataset, indices)
        if rows is not None:
            return rows
        if self._getitems is not None:
            try:
                return self._fetch_together(indices).samples
            except BaseException as error:
                if is_interrupt(error):
                    raise
                # one by one, then, to see which ones they are
        return self._one_by_one(indices, is_interrupt)

    def peers(self, index: int) -> range:
        """The indices among which a replacement for a sample is to be found: those of its source, or all.

        A dataset that is made of several sources, one after the other, says by ``source_range(index)`` which these are.
        """
        source_range = getattr(self._dataset, "source_range", None)
        return range(self.length) if source_range is None else source_range(index)

    def _one_by_one(self, indices: Sequence[int], is_interrupt: IsInterrupt) -> list[Any]:
        each: list[Any] = []
        dataset, call = self._dataset, self._call
        times = [perf_counter_ns()]
        for index in indices:
            try:
                each.append(dataset[index] if call is None else call(operator.getitem, dataset, index))
            except BaseException as error:
                if is_interrupt(error):
                    raise
                each.append(SampleError(index, error))
            if self.is_timed:
                times.append(perf_counter_ns())
        self.slow = SlowSamples.among(indices, times)
        return each

    def _timed(self, left: Iterator[int], indices: Sequence[int]) -> list[Any]:
        """The samples that are ``left`` of these, which are all of them."""
        samples, times = [], [perf_counter_ns()]
        get = functools.partial(operator.getitem, self._dataset) if self._call is None else self._get
        for index in left:
            samples.append(get(index))
            times.append(perf_counter_ns())
        self.slow = SlowSamples.among(indices, times)
        return samples

    def _get(self, index: int) -> Any:
        return self._dataset[index] if self._call is None else self._call(operator.getitem, self._dataset, index)

    def _get_together(self, indices: Sequence[int]) -> Sequence[Any]:
        assert self._getitems is not None
        known = indices if isinstance(indices, MixedIndices) else list(indices)
        return as_columns(self._dataset, indices) or self._getitems(known)

    def _fetch_together(self, indices: Sequence[int]) -> Fetched:
        try:
            samples = self._get_together(indices) if self._call is None else self._call(self._get_together, indices)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            add_note(error, f"stoker: dataset.__getitems__({_brief(indices)}) raised it")
            raise
        if len(samples) != len(indices):
            raise ValueError(
                f"dataset.__getitems__ gave {len(samples)} samples for {len(indices)} indices ({_brief(indices)}): "
                f"it must give one for each, in order"
            )
        return Fetched(samples, indices, [])


def fetched(dataset: Any, indices: Sequence[Any]) -> Sequence[Any]:
    """The same, of a dataset that need not have a length, and whose indices need not be numbers."""
    rows = gathered(dataset, indices) or as_columns(dataset, indices)
    if rows is not None:
        return rows
    together = getattr(dataset, "__getitems__", None)
    return together(indices) if together else [dataset[index] for index in indices]


def _brief(indices: Sequence[int]) -> str:
    shown = ", ".join(map(str, indices[:4]))
    return f"[{shown}, ... {len(indices)} in all]" if len(indices) > 4 else f"[{shown}]"
