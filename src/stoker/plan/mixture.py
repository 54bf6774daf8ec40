"""A mixture as the order of a plan: how long its epochs are, how its weights change, and what a state keeps of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Any, Literal, TypeAlias

from stoker.errors import StateError
from stoker.plan.mixed import ENDLESS, FORMULA, By, Mixed, MixedStream, Segment

Ends = Literal["first", "all", "never"]
Weights: TypeAlias = tuple[float, ...]
Schedule: TypeAlias = tuple[tuple[int, Weights], ...]  # (step, weights from that step on), from step 0 on


@dataclass(frozen=True)
class Recipe:
    """What a mixture is asked to be, apart from batches and shards.

    Attributes:
        names: Of the sources.
        lengths: Of the sources.
        schedule: Their weights, by step.
        by: How sources follow each other.
        ends: When an epoch ends; an int: after so many samples.
    """

    names: tuple[str, ...]
    lengths: tuple[int, ...]
    schedule: Schedule
    by: By
    ends: Ends | int


@dataclass(frozen=True, eq=False)
class Mixture:
    """Which sample stands where, epoch after epoch, each of which goes on where the one before has ended.

    Attributes:
        recipe: What it was made of.
        stream: Which source each position of the endless stream has.
        length: Positions in an epoch, over all shards.
        stride: Positions in a step: to which position a step of the schedule belongs.
        origin: An epoch, and the position of the stream at which it begins. Not (0, 0) where sources were added or
            taken away.
    """

    recipe: Recipe
    stream: MixedStream
    length: int
    stride: int
    origin: tuple[int, int] = (0, 0)

    @classmethod
    def of(cls, recipe: Recipe, *, stride: int, seed: int) -> Mixture:
        """With the schedule's weights from the beginning.

        Raises:
            ValueError: It would never end, though it is to end.
        """
        stream = MixedStream.of([(step * stride, weights) for step, weights in recipe.schedule], recipe.by, seed)
        first = cls(recipe, stream, _length(recipe, stream), stride)
        if recipe.schedule[-1][0] * stride <= first.length:
            return first
        # Steps of later epochs: the last round of an epoch may be shorter than the others.
        places = [(first.position(step), weights) for step, weights in recipe.schedule]
        return replace(first, stream=MixedStream.of(places, recipe.by, seed))

    @cached_property
    def _value(self) -> tuple[Any, ...]:
        return self.recipe, self.stream, self.length, self.stride, self.origin

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Mixture) and self._value == other._value)

    def __hash__(self) -> int:
        # It is asked for with each batch, and there may be thousands of segments.
        return hash((self.length, self.stream.segments[-1], self.stream.seed))

    def positions(self, length: int, seed: int, epoch: int) -> int:
        if epoch != self.origin[0] and self.is_endless:
            raise ValueError(
                f"epoch {epoch} of a Mix with ends='never': it has epoch {self.origin[0]} only, without end"
            )
        return self.length

    @property
    def is_endless(self) -> bool:
        return self.length >= ENDLESS

    def of_epoch(self, length: int, shuffle: bool | int, seed: int, epoch: int) -> Mixed:
        first = self.begin(epoch)
        if first < self.stream.segments[0].start:
            raise ValueError(
                f"epoch {epoch} came before the sources of this mixture were changed, at epoch {self.origin[0]}: make "
                f"a Mix of the sources that there were then"
            )
        if epoch > self.origin[0] and first + self.length > ENDLESS:
            raise ValueError(f"epoch {epoch} of a mixture begins at sample {first}, and it can have {ENDLESS} in all")
        names, lengths = self.recipe.names, self.recipe.lengths
        return Mixed(self.stream, names, lengths, first=first, positions=self.length, shuffle=shuffle, seed=seed)

    def fingerprint(self, epoch: int | None) -> str:
        return f"Mix(by={self.recipe.by!r}, formula={FORMULA})"

    @property
    def rounds(self) -> int:
        """Steps in an epoch."""
        return -(-self.length // self.stride)

    def begin(self, epoch: int) -> int:
        """The position of the stream at which that epoch begins."""
        return self.origin[1] + (epoch - self.origin[0]) * self.length

    def stream_position(self, epoch: int, position: int) -> int:
        """The position of the stream that is that one of an epoch; what comes after the epoch's end is the next one."""
        return self.begin(epoch) + min(position, self.length)

    def position(self, step: int) -> int:
        """The position of the stream at which that step begins, counted from the first one of epoch 0 on."""
        epoch, rest = divmod(step, self.rounds)
        return self.begin(epoch) + rest * self.stride

    def with_stride(self, stride: int) -> Mixture:
        """The same for steps of another size, unless weights were set since it was made, or it was resumed."""
        if self != self.of(self.recipe, stride=self.stride, seed=self.stream.seed):
            return self
        return self.of(self.recipe, stride=stride, seed=self.stream.seed)

    def with_weights(self, weights: Weights, position: int) -> Mixture:
        """The same up to that position of the stream, and from there on with these weights."""
        return replace(self, stream=self.stream.changed(position, weights))

    def to_state(self) -> dict[str, Any]:
        """What the stream depends on, as JSON can hold it."""
        recipe = self.recipe
        return {
            "sources": dict(zip(recipe.names, recipe.lengths, strict=True)),
            "schedule": [[step, list(weights)] for step, weights in recipe.schedule],
            "ends": recipe.ends,
            "length": self.length,
            "stride": self.stride,
            "origin": list(self.origin),
            "segments": [[segment.start, *map(list, segment[1:])] for segment in self.stream.segments],
        }

    def resumed(self, state: Any, epoch: int | None) -> Mixture:
        """As it was when `to_state` was called, also if this one was made with another stride.

        Where an epoch begins, sources may have been added or taken away since then.

        Args:
            state: What `to_state` gave.
            epoch: The epoch that begins where the state was saved; None: it was saved in the middle of one.

        Raises:
            StateError: It is damaged, or of another mixture.
        """
        try:
            theirs = _restored(state, self)
        except (TypeError, ValueError, LookupError, AttributeError, OverflowError) as error:
            raise StateError(f"the state is damaged: its mixture cannot be read ({error!r})") from error
        if theirs.recipe == self.recipe:
            return theirs
        self._check_same(theirs.recipe, epoch)
        assert epoch is not None
        return self._with_other_sources(theirs, epoch)

    def _check_same(self, theirs: Recipe, epoch: int | None) -> None:
        """Refuses what no run can go on with."""
        ours = self.recipe
        before, now = (
            dict(zip(theirs.names, theirs.lengths, strict=True)),
            dict(zip(ours.names, ours.lengths, strict=True)),
        )
        for name in before.keys() & now.keys():
            if before[name] != now[name]:
                raise StateError(
                    f"the state was saved with {before[name]} samples in the source {name!r}, which has {now[name]} "
                    f"now: make the Mix with the source as it was, or add the new one under another name"
                )
        if theirs.names == ours.names:
            what = "ends" if theirs.ends != ours.ends else "weights"
            told = (theirs.ends, ours.ends) if what == "ends" else (_told(theirs), _told(ours))
            raise StateError(
                f"the state was saved with a Mix whose {what} are {told[0]!r}, and this one has {told[1]!r}: make the "
                f"Mix as it was; for other weights, call loader.set_weights(...) after load_state_dict(...)"
            )
        if epoch is None:
            raise StateError(
                f"the state was saved in the middle of an epoch of the sources {', '.join(theirs.names)}, and this Mix "
                f"has {', '.join(ours.names)}: sources can be added or taken away where an epoch begins"
            )

    def _with_other_sources(self, theirs: Mixture, epoch: int) -> Mixture:
        """From that epoch on: each source that was there goes on where it was, and new ones begin."""
        first = theirs.begin(epoch)
        counted = dict(zip(theirs.recipe.names, theirs.stream.counts(first), strict=True))
        counts = tuple(counted.get(name, 0) for name in self.recipe.names)
        step = epoch * theirs.rounds
        begun = [nth for nth, (start, _) in enumerate(self.recipe.schedule) if start <= step][-1]
        stream = replace(self.stream, segments=(Segment.first(first, self.recipe.schedule[begun][1], counts),))
        mixture = replace(self, stream=stream, origin=(epoch, first))
        for start, weights in self.recipe.schedule[begun + 1 :]:
            mixture = mixture.with_weights(weights, mixture.position(start))
        return mixture


def _told(recipe: Recipe) -> list[tuple[int, dict[str, float]]]:
    return [(step, dict(zip(recipe.names, weights, strict=True))) for step, weights in recipe.schedule]


def _restored(state: dict[str, Any], mixture: Mixture) -> Mixture:
    sources, recipe = state["sources"], mixture.recipe
    schedule = tuple((int(step), _floats(weights)) for step, weights in state["schedule"])
    segments = [
        Segment(int(start), _floats(weights), tuple(map(int, counts)), _floats(owed))
        for start, weights, counts, owed in state["segments"]
    ]
    if not segments or any(len(part) != len(sources) for segment in segments for part in segment[1:]):
        raise ValueError("segments and sources differ in number")
    origin, lengths = state["origin"], tuple(map(int, sources.values()))
    _check_segments(segments, int(origin[1]))
    if min(int(state["length"]), int(state["stride"])) < 1:
        raise ValueError("its length or its stride is below 1")
    return Mixture(
        Recipe(tuple(sources), lengths, schedule, recipe.by, state["ends"]),
        replace(mixture.stream, segments=tuple(segments)),
        int(state["length"]),
        int(state["stride"]),
        (int(origin[0]), int(origin[1])),
    )


def _check_segments(segments: list[Segment], first: int) -> None:
    """Whether a stream can have them, whose first position is ``first``."""
    starts = [segment.start for segment in segments]
    if starts[0] != first or starts != sorted(set(starts)):
        raise ValueError(f"segments do not rise from {first} on")
    for segment in segments:
        if not all(0 <= weight < inf for weight in segment.weights) or not any(segment.weights):
            raise ValueError(f"a segment has the weights {segment.weights}")
        if min(segment.counts) < 0:
            raise ValueError("a segment counts fewer than 0 samples")
        if not all(abs(more) < ENDLESS for more in segment.owed):
            raise ValueError(f"a segment owes {segment.owed} samples")


def _floats(numbers: Sequence[Any]) -> Weights:
    return tuple(map(float, numbers))


def _length(recipe: Recipe, stream: MixedStream) -> int:
    """Positions in an epoch."""
    ends = recipe.ends
    if ends == "never":
        return ENDLESS
    if isinstance(ends, int):
        return ends
    if ends == "first":  # the position before which a source has one more than it has samples is where it began again
        begun = [stream.first_after(source, length + 1) for source, length in enumerate(recipe.lengths)]
        return min((position - 1 for position in begun if position is not None), default=ENDLESS - 1)
    over = [stream.first_after(source, length) for source, length in enumerate(recipe.lengths)]
    never = [name for name, position in zip(recipe.names, over, strict=True) if position is None]
    if never:
        raise ValueError(
            f"ends='all', and the weights are such that the source {never[0]!r} never comes to its end: give it a "
            f"weight above 0, take it out, or pass length=n or ends='first'"
        )
    return max(position for position in over if position is not None)
