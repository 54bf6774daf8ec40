"""Ordinary uses, and the types that they have to a type checker. It also runs: what is said here is true."""

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

import stoker


@dataclass
class Pair:
    x: npt.NDArray[np.float64]
    y: int


class Pairs:
    """A dataset as most people write it."""

    def __init__(self, n: int = 4) -> None:
        self.n = n

    def __getitem__(self, index: int) -> Pair:
        return Pair(np.full(2, index, np.float64), index)

    def __len__(self) -> int:
        return self.n


class Numbers:
    """Its samples have ``Any`` in their type."""

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"x": np.full(2, index), "y": index}

    def __len__(self) -> int:
        return 4


@dataclass
class Packed:
    xs: npt.NDArray[np.float64]
    count: int


def together(samples: list[Pair]) -> Packed:
    return Packed(np.stack([sample.x for sample in samples]), len(samples))


def of_any(samples: Iterable[object]) -> list[str]:
    return [str(sample) for sample in samples]


def total(batch: Any) -> float:
    return float(batch.sum())


def counted(batch: Packed) -> int:
    return batch.count


def maker() -> Pairs:
    return Pairs()


def columns() -> dict[str, npt.NDArray[np.float64]]:
    return {"x": np.zeros(4)}


def moved(batch: Any) -> Any:
    return batch


def first_of(loader: stoker.Loader[object]) -> object:
    return next(iter(loader))


def lengths(dataset: stoker.Dataset[Pair]) -> int:
    return len(dataset[0].x) * len(dataset)


def is_(value: Any, kind: type) -> None:
    """What the checker believes of a batch, seen when it runs."""
    if not isinstance(value, kind):
        raise SystemExit(f"{type(value)} is no {kind}")


# Batches that Stoker collates are trees of arrays, whose form depends on samples: any type.
for batch in stoker.Loader(Pairs(), 2, workers=stoker.Threads(2), shuffle=True):
    assert_type(batch, Any)
assert_type(stoker.Loader([1, 2, 3]), stoker.Loader[Any])
assert_type(stoker.Loader(np.zeros((4, 2)), shuffle=3, shard=(0, 1), on_error="skip"), stoker.Loader[Any])
assert_type(stoker.Loader({"x": np.zeros(4), "y": [1, 2, 3, 4]}, 2, prefetch=4), stoker.Loader[Any])
assert_type(stoker.Loader(stoker.Chunks(__file__), 2, seed=1), stoker.Loader[Any])
assert_type(stoker.Loader(stoker.Mix({"a": Pairs(), "b": np.zeros(3)}, {"a": 1, "b": 3}), 2), stoker.Loader[Any])
assert_type(stoker.Loader(stoker.Mix([Pairs(), {"x": np.zeros(3)}]), None), stoker.Loader[Any])
assert_type(stoker.Loader([[1], [2, 3]], collate=stoker.pad), stoker.Loader[Any])

# Made in each worker: a class, a partial, a function.
assert_type(stoker.Loader(Pairs, 2), stoker.Loader[Any])
assert_type(stoker.Loader(functools.partial(Pairs, n=8), 2, retry=stoker.Retry(2)), stoker.Loader[Any])
assert_type(stoker.Loader(maker, None), stoker.Loader[Pair])
assert_type(stoker.Loader(lambda: Pairs(8), None), stoker.Loader[Pair])
assert_type(stoker.Loader(columns), stoker.Loader[Any])

# Single samples are what the dataset gives.
for sample in stoker.Loader(Pairs(), None, workers=1):
    assert_type(sample, Pair)
    is_(sample, Pair)
    is_(sample.y, int)
for row in stoker.Loader(Numbers(), batch_size=None, to=None):
    assert_type(row, dict[str, Any])
    is_(row, dict)
for number in stoker.Loader([1, 2, 3], None, workers=1):
    assert_type(number, int)
    is_(number, int)
assert_type(stoker.Loader(Pairs, None, workers=2), stoker.Loader[Pair])
assert_type(stoker.Loader(np.zeros(3), None), stoker.Loader[Any])
assert_type(stoker.Loader({"x": np.zeros(3)}, None), stoker.Loader[Any])
assert_type(stoker.Loader(stoker.Chunks(__file__), None), stoker.Loader[Any])

# A collate function of your own.
for packed in stoker.Loader(Pairs(), 2, collate=together, workers=1):
    assert_type(packed, Packed)
    is_(packed, Packed)
    is_(packed.count, int)
assert_type(stoker.Loader(Pairs, collate=together, drop_last=True), stoker.Loader[Packed])
assert_type(stoker.Loader(Pairs(), collate=of_any), stoker.Loader[list[str]])
assert_type(stoker.Loader(Numbers(), collate=lambda rows: len(rows)), stoker.Loader[int])
stoker.Loader(Pairs(), collate=lambda pairs: [pair.y for pair in pairs])

# What a function makes of each batch comes last, whatever came before.
for value in stoker.Loader([1, 2, 3], to=total):
    assert_type(value, float)
    is_(value, float)
assert_type(stoker.Loader(Pairs(), collate=together, to=counted), stoker.Loader[int])
assert_type(stoker.Loader(Pairs(), None, to=str), stoker.Loader[str])

# A framework, or a function that moves batches: their types are not followed.
assert_type(stoker.Loader(Pairs(), 2, to="numpy", collate=together), stoker.Loader[Any])
assert_type(stoker.Loader(Pairs(), None, to="numpy"), stoker.Loader[Any])
assert_type(stoker.Loader(Pairs(), collate=together, to_device=moved, max_on_device=1), stoker.Loader[Any])
assert_type(stoker.Loader(Pairs(), to=total, to_device=moved), stoker.Loader[Any])

# What is known only when the program runs.
size: int | None = None if len(Pairs()) > 9 else 2
assert len(list(stoker.Loader(Pairs(), size))) == 2
of_size: Callable[[list[Pair]], Packed] | None = together
assert len(list(stoker.Loader(Pairs(), 2, collate=of_size))) == 2

# As arguments and results of functions. A loader of something is one of anything more general.
loader: stoker.Loader[Packed] = stoker.Loader(Pairs(), collate=together)
first_of(loader)
first_of(stoker.Loader(Pairs()))
lengths(Pairs())
bare: stoker.Loader = stoker.Loader(Pairs())  # type: ignore[type-arg, unused-ignore]

# Attributes and methods.
with stoker.Loader(Pairs(), 2, workers="auto", shard=(0, 1)) as closing:
    assert_type(closing.state_dict(), dict[str, Any])
    assert_type(closing.stats().diagnosis, str)
    assert_type(closing.batch_size, int | None)
    assert_type(closing.seed, int)
    assert_type(closing.epoch, int)
    assert_type(closing.watch_url, str | None)

# Streams.
with stoker.stream(together, [[Pairs()[0]], [Pairs()[1]]], workers=stoker.Threads(1)) as results:
    for packed in results:
        assert_type(packed, Packed)
        is_(packed, Packed)
for length in stoker.stream(len, ["a", "bc"], to=None):
    assert_type(length, int)
assert_type(stoker.stream(lambda name: name + "!", ["a"]), stoker.Stream[str])
assert_type(stoker.stream(np.ones, [1, 2], to=total, keep_workers=True), stoker.Stream[float])
assert_type(stoker.stream(abs, range(3), to="numpy"), stoker.Stream[Any])
assert_type(stoker.stream(abs, range(3), to_device=moved), stoker.Stream[Any])
stoker.stream(functools.partial(pow, 2), iter([3]))

table: Mapping[str, Any] = {"x": np.zeros(4)}
stoker.Loader(table, 2)
