"""``Mix``: several datasets, in one stream of samples, by weight."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from numbers import Real
from operator import index as as_int
from operator import length_hint
from typing import Any, TypeAlias

import numpy as np

from stoker.counts import BOOLS
from stoker.errors import add_note
from stoker.plan import Mixture, Recipe
from stoker.plan.mixed import ENDLESS, By, MixedIndices
from stoker.plan.mixture import Ends, Schedule, Weights
from stoker.plan.permutation import Positions
from stoker.sources.dataset import Dataset
from stoker.sources.gather import gathered_of_several, gives_many
from stoker.sources.indexed import fetched, is_factory
from stoker.sources.kinds import is_chunks
from stoker.sources.tables import as_dataset

Source: TypeAlias = Dataset[Any] | Mapping[str, Any]

_BY = ("quota", "chance")
_ENDS = ("first", "all", "never")


class Mix:
    """Several datasets as one, whose samples a ``Loader`` takes in proportion to their weights.

    Each source goes through its own epochs, at its own pace: all its samples once, in the order that the loader's
    ``shuffle`` says, before any of them comes again. The loader's epoch is another matter: ``ends`` or ``length`` say
    how many samples it has, and the next one goes on where it ended.

    Args:
        sources: The datasets, by name, or in a list. Each has ``__getitem__`` and ``__len__``, or is a dict of arrays.
        weights: One for each source, by name or in order, in any scale: 3 and 1 are the same as 0.75 and 0.25. Or a
            schedule, ``[(0, weights), (10_000, weights), ...]``: from which step on they are what they are. A step is
            one batch of each shard. None: in proportion to the lengths of the sources.
        by: "quota": sources alternate as evenly as can be: after N samples each has had N times its weight, give or
            take one. "chance": each stretch of 4,096 samples has these quotas, in an order that is drawn.
        ends: When an epoch of the loader ends. "first": before any source would begin again. "all": when every
            source was gone through at least once. "never": the epoch has no end.
        length: The number of samples in an epoch, instead of ``ends``.
        tag: The number of the source (as in ``names``) is added to each sample: to a dict under this key; any other
            sample becomes a tuple ``(sample, number)``. None: it is not added.

    Raises:
        TypeError: A source is no dataset that can be asked for samples by number, or an argument has the wrong type.
        ValueError: A source is empty, or an argument has a wrong value.

    Example:
        >>> import numpy as np, stoker
        >>> mix = stoker.Mix({"web": np.arange(100), "code": np.arange(1000, 1010)}, {"web": 0.75, "code": 0.25})
        >>> with stoker.Loader(mix, batch_size=8) as loader:
        ...     next(iter(loader)).tolist()
        [0, 1, 1000, 2, 3, 4, 1001, 5]
    """

    def __init__(
        self,
        sources: Mapping[str, Source] | Sequence[Source],
        weights: Any = None,
        *,
        by: By = "quota",
        ends: Ends | None = None,
        length: int | None = None,
        tag: str | None = None,
    ) -> None:
        named = _named(sources)
        if by not in _BY:
            raise ValueError(f"by={by!r}: pass 'quota' or 'chance'")
        if tag is not None and not isinstance(tag, str):
            raise TypeError(
                f"tag={tag!r}: pass a str, the key of the source's number in samples that are dicts, or None"
            )
        self.samples = MixedSamples(tuple(named), tuple(_source(name, source) for name, source in named.items()), tag)
        lengths = tuple(map(len, self.samples.sources))
        for name, size in zip(named, lengths, strict=True):
            if size == 0:
                raise ValueError(f"the source {name!r} has no samples: leave it out")
        self._recipe = Recipe(tuple(named), lengths, _schedule(weights, self.names, lengths), by, _ends(ends, length))

    @property
    def names(self) -> tuple[str, ...]:
        """Of the sources; those of a list are their numbers."""
        return self.samples.names

    def __len__(self) -> int:
        """The samples of all sources together."""
        return len(self.samples)

    def __getitem__(self, index: int) -> Any:
        """The sample with that number, where those of all sources are numbered one source after the other."""
        return self.samples[index]

    def __getitems__(self, indices: Sequence[int]) -> Sequence[Any]:
        return self.samples.__getitems__(indices)

    def locate(self, index: int) -> tuple[str, int]:
        """The source of a sample, and the sample's number there, by its number in the Mix.

        Example:
            >>> Mix({"web": range(100), "code": range(10)}).locate(103)
            ('code', 3)
        """
        source, own = self.samples.located(index)
        return self.names[source], own

    def __repr__(self) -> str:
        return f"Mix({', '.join(self.names)}, by={self._recipe.by!r}, ends={self._recipe.ends!r})"

    def order(self, *, stride: int, seed: int) -> Mixture:
        """The order of its samples for a loader with steps of so many."""
        return Mixture.of(self._recipe, stride=stride, seed=seed)


class MixedSamples:
    """The sources one after the other: what workers get, and what sample i is. It knows nothing of weights."""

    def __init__(self, names: tuple[str, ...], sources: tuple[Any, ...], tag: str | None) -> None:
        self.names, self.sources, self.tag = names, sources, tag
        self._ends = np.cumsum([len(source) for source in sources])
        self.reads_one_by_one = not any(map(gives_many, sources))

    def __len__(self) -> int:
        return int(self._ends[-1])

    def located(self, index: int) -> tuple[int, int]:
        """The number of the source, and of the sample there."""
        if not 0 <= index < len(self):
            raise IndexError(f"index {index} is out of range for {len(self)} samples")
        source = int(np.searchsorted(self._ends, index, side="right"))
        return source, index - self._begin(source)

    def __getitem__(self, index: int) -> Any:
        source, own = self.located(index)
        try:
            sample = self.sources[source][own]
        except BaseException as error:
            add_note(error, f"stoker: sample {own} of the source {self.names[source]!r}")
            raise
        return sample if self.tag is None else _tagged(sample, source, self.tag)

    def source_range(self, index: int) -> range:
        """The numbers of all samples of the same source: one of them may take the place of one that fails."""
        source, _ = self.located(index)
        return range(self._begin(source), int(self._ends[source]))

    def __getitems__(self, indices: Sequence[int]) -> Sequence[Any]:
        """Each source that can give several samples at once is asked once, for all of its own."""
        if not len(indices):
            return []
        if isinstance(indices, MixedIndices):
            numbers, own = indices.sources, indices.own
        else:
            rows = np.asarray(indices, dtype=np.int64)
            numbers = np.searchsorted(self._ends, rows, side="right")
            own = rows - np.array([0, *self._ends[:-1]])[numbers]
        samples: Sequence[Any]
        if self.reads_one_by_one:
            samples = self._each(numbers.tolist(), own.tolist())
        elif (numbers == numbers[0]).all():
            samples = self._together(int(numbers[0]), own)
        else:
            parts = [
                (source, (numbers == source).nonzero()[0]) for source in np.bincount(numbers).nonzero()[0].tolist()
            ]
            samples = self._gathered(indices, own, parts) or self._scattered(own, parts)
        if self.tag is None:
            return samples
        return [_tagged(sample, source, self.tag) for sample, source in zip(samples, numbers.tolist(), strict=True)]

    def _each(self, numbers: list[int], own: list[int]) -> list[Any]:
        sources, left = self.sources, iter(own)
        try:
            return [sources[number][index] for number, index in zip(numbers, left, strict=True)]
        except BaseException as error:
            failed = len(own) - length_hint(left) - 1
            add_note(error, f"stoker: sample {own[failed]} of the source {self.names[numbers[failed]]!r}")
            raise

    def _gathered(
        self, indices: Sequence[int], own: Positions, parts: list[tuple[int, Positions]]
    ) -> Sequence[Any] | None:
        """Of sources that are arrays; but only for a loader of a mixture, whose collation takes them as they are."""
        if self.tag is not None or not isinstance(indices, MixedIndices):
            return None
        return gathered_of_several(
            self, indices, [(self.sources[source], own[places], places) for source, places in parts]
        )

    def _scattered(self, own: Positions, parts: list[tuple[int, Positions]]) -> list[Any]:
        samples: list[Any] = [None] * own.size
        for source, places in parts:
            for place, sample in zip(places.tolist(), self._together(source, own[places]), strict=True):
                samples[place] = sample
        return samples

    def _together(self, source: int, rows: Positions) -> Sequence[Any]:
        own = rows.tolist()
        try:
            found = fetched(self.sources[source], own)
            if len(found) != len(own):
                raise ValueError(
                    f"it gave {len(found)} samples for {len(own)} indices: it must give one for each, in order"
                )
        except BaseException as error:
            add_note(error, f"stoker: in a batch's samples of the source {self.names[source]!r}")
            raise
        return found

    def _begin(self, source: int) -> int:
        return int(self._ends[source - 1]) if source else 0


def _tagged(sample: Any, source: int, tag: str) -> Any:
    if not isinstance(sample, dict):
        return sample, source
    if tag in sample:
        raise ValueError(f"the samples have a key {tag!r} already: pass another tag= to Mix")
    return {**sample, tag: source}


def _named(sources: Any) -> dict[str, Any]:
    if isinstance(sources, Mapping):
        for name in sources:
            if not isinstance(name, str):
                raise TypeError(
                    f"the source {name!r} has a name that is no str: pass {{'web': dataset, ...}}, or a list"
                )
        named = dict(sources)
    elif isinstance(sources, list | tuple):
        if any(isinstance(one, tuple) and len(one) == 2 and isinstance(one[0], str) for one in sources):
            raise TypeError("sources: a list of (name, dataset): pass a dict, {'web': dataset, ...}")
        named = {str(number): source for number, source in enumerate(sources)}
    else:
        raise TypeError(
            f"sources: a {type(sources).__name__}: pass datasets by name, {{'web': dataset, ...}}, or a list"
        )
    if not named:
        raise ValueError("a Mix of no sources: pass one dataset at least")
    return named


def _source(name: str, source: Any) -> Any:
    """It, as a dataset that can be asked for samples by number."""
    if is_chunks(source):
        raise TypeError(
            f"the source {name!r} is a Chunks, whose samples have no numbers: which one is the k-th is known once the "
            f"files before it were read, and a Mix must know it at once. Pass datasets with __getitem__ and __len__"
        )
    if isinstance(source, Mix):
        raise TypeError(
            f"the source {name!r} is a Mix itself, whose weights would not count: pass its sources to this one, with "
            f"their weights multiplied"
        )
    if is_factory(source):
        raise TypeError(
            f"the source {name!r} is a class or function that makes a dataset, and a Mix must know its length: pass "
            f"the dataset itself; one that cannot be sent to workers can open its files at its first sample"
        )
    try:
        return as_dataset(source)
    except (TypeError, ValueError) as error:
        add_note(error, f"stoker: in the source {name!r} of a Mix")
        raise


def _ends(ends: Any, length: Any) -> Ends | int:
    if length is None:
        if ends is not None and ends not in _ENDS:
            raise ValueError(f"ends={ends!r}: pass 'first', 'all' or 'never', or length=n")
        return ends or "first"
    if ends is not None:
        raise ValueError(f"ends={ends!r} and length={length!r}: pass one of them")
    try:
        number = -1 if isinstance(length, BOOLS) else as_int(length)
    except TypeError:
        number = -1
    if not 1 <= number <= ENDLESS:
        raise ValueError(f"length={length!r}: pass the number of samples in an epoch, from 1 to 2**62")
    return number


def _schedule(weights: Any, names: tuple[str, ...], lengths: tuple[int, ...]) -> Schedule:
    if weights is None:
        return ((0, tuple(map(float, lengths))),)
    is_schedule = isinstance(weights, list | tuple) and any(isinstance(part, list | tuple) for part in weights)
    if not is_schedule:
        return ((0, checked_weights(weights, names)),)
    found: list[tuple[int, Weights]] = []
    for part in weights:
        if not isinstance(part, list | tuple) or len(part) != 2 or isinstance(part[0], bool) or not _is_int(part[0]):
            raise TypeError(f"weights: {part!r} in a schedule: pass [(0, weights), (step, weights), ...]")
        found.append((as_int(part[0]), checked_weights(part[1], names)))
    steps = [step for step, _ in found]
    if steps[0] != 0 or any(later <= earlier for earlier, later in pairwise(steps)):
        raise ValueError(f"weights: a schedule of the steps {steps}: pass rising steps, the first of which is 0")
    return tuple(found)


def checked_weights(weights: Any, names: tuple[str, ...]) -> Weights:
    """One for each source, in their order.

    Raises:
        TypeError: They are no numbers.
        ValueError: There are others than these sources have, or they are negative, infinite, NaN, or all 0.
    """
    if isinstance(weights, Mapping):
        unknown, missing = (
            [name for name in weights if name not in names],
            [name for name in names if name not in weights],
        )
        if unknown or missing:
            what = f"a weight for {unknown[0]!r}, which is no source" if unknown else f"no weight for {missing[0]!r}"
            raise ValueError(f"weights: there is {what}: pass one for each of {', '.join(names)} (0: none of it)")
        given = [weights[name] for name in names]
    elif isinstance(weights, list | tuple) or (hasattr(weights, "__array__") and np.ndim(weights) == 1):
        given = list(weights) if isinstance(weights, list | tuple) else np.asarray(weights).tolist()
        if len(given) != len(names):
            raise ValueError(f"weights: {len(given)} for {len(names)} sources: pass one for each of {', '.join(names)}")
    else:
        raise TypeError(f"weights={weights!r}: pass {{name: weight, ...}}, or a list of one weight for each source")
    for name, weight in zip(names, given, strict=True):
        if not isinstance(weight, Real) or isinstance(weight, bool):
            raise TypeError(f"the weight of {name!r} is {weight!r}: pass a number, 0 or more")
        if not _is_finite(weight):
            raise ValueError(f"the weight of {name!r} is {weight!r}: pass a finite number, 0 or more")
    if not any(given):
        raise ValueError("all weights are 0: give one source a weight above 0")
    return tuple(map(float, given))


def _is_finite(weight: Real) -> bool:
    """And not below 0."""
    try:
        return 0 <= float(weight) < math.inf
    except OverflowError:
        return False


def _is_int(value: Any) -> bool:
    try:
        as_int(value)
    except TypeError:
        return False
    return True
