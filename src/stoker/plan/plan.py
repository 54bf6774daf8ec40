"""The plan: how an epoch is cut into rounds, and a round into one batch for each shard."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from operator import index
from typing import Any, NamedTuple

from stoker.plan.order import Chunked, Nearby, Order, Sequential, Shuffled
from stoker.plan.permutation import derive, extend
from stoker.plan.rotated import Rotated

PLAN_VERSION = 1  # raised when any (plan, epoch, position) would give other indices or another seed

# Domains: keys for different purposes never come from the same parts.
_SHUFFLE_KEY, _BATCH_SEED, _SAMPLE_SEED, _ROTATION_KEY = 1, 2, 3, 4


class Batch(NamedTuple):
    """One shard's share of a round.

    Attributes:
        epoch: The epoch it belongs to.
        start: The global position of its first sample; where samples rotate, its first use.
        stop: The global position after its last sample, or use.
        round: The global position where its round begins, the same for all shards.
    """

    epoch: int
    start: int
    stop: int
    round: int


@dataclass(frozen=True)
class Plan:
    """Which batches there are and in what order: a pure function of these fields.

    A round takes the next `batch_size * shards` positions of the epoch's global order, and shard i gets the
    i-th run of `batch_size` of them. What is left for the last round is split evenly, so that every shard has
    the same number of batches.

    Args:
        length: Samples in the dataset.
        batch_size: Samples in a batch; None for single samples.
        shuffle: True for the whole dataset, or an int window: no sample moves that far or further.
        seed: Any int.
        drop_last: Leave out a last round that not every shard can fill.
        shard: (index, count).
        times: Uses of each sample in an epoch.
        rotating: Samples of this shard that rotate at the same time, where they are used more than once; None: all.

    Example:
        >>> plan = Plan(10, 4)
        >>> [list(plan.indices(batch)) for batch in plan.batches(epoch=0)]
        [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    """

    length: int
    batch_size: int | None
    shuffle: bool | int = False
    seed: int = 0
    drop_last: bool = False
    shard: tuple[int, int] = (0, 1)
    times: int = 1
    rotating: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.drop_last, bool):
            raise TypeError(f"drop_last is {self.drop_last!r}: write True or False")
        # The fields are stored as plain ints, so that equal plans pickle, hash and print alike.
        checked = {
            "length": _integer("length", self.length, least=0, write="the number of samples, 0 or more"),
            "batch_size": None
            if self.batch_size is None
            else _integer("batch_size", self.batch_size, least=1, write="1 or more, or None for single samples"),
            "shuffle": _checked_shuffle(self.shuffle),
            "seed": _integer("seed", self.seed, least=None, write="any int"),
            "shard": _checked_shard(self.shard),
            "times": _integer("times", self.times, least=1, write="how often each sample is used, 1 or more"),
            "rotating": None
            if self.rotating is None
            else _integer("rotating", self.rotating, least=1, write="a number of samples, 1 or more"),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return self.rounds

    @property
    def rounds(self) -> int:
        """Batches in an epoch, the same for every shard."""
        full, rest = divmod(self.positions, self.stride)
        return full + (rest > 0 and not self.drop_last)

    @property
    def positions(self) -> int:
        """Positions in an epoch, over all shards: each use of a sample is one."""
        return self.length * self.times

    @property
    def share(self) -> int:
        """Positions in an epoch of this shard."""
        full, rest = divmod(self.positions, self.stride)
        share = full * (self.batch_size or 1)
        if rest and not self.drop_last:
            last = self.batch(0, full * self.stride)
            share += last.stop - last.start
        return share

    @cached_property
    def stride(self) -> int:
        """Positions in a full round, over all shards."""
        return (self.batch_size or 1) * self.shard[1]

    def is_over(self, position: int) -> bool:
        """Whether no round begins at `position`: the epoch ends there."""
        rest = self.positions - position
        return rest <= 0 or (self.drop_last and rest < self.stride)

    def next_position(self, position: int) -> int:
        """Where the round after the one at `position` begins, or the epoch ends."""
        return min(position + self.stride, self.positions)

    def batch(self, epoch: int, position: int) -> Batch:
        """This shard's batch of the round that begins at global position `position`.

        Any position within the epoch will do, as a run may resume with another number of shards; but where samples
        rotate, each shard has its own, and only multiples of `stride` will do.
        """
        if position < 0 or self.is_over(position):
            raise ValueError(
                f"no round begins at position {position} of an epoch of {self.positions} positions in rounds of "
                f"{self.stride}: ask is_over(position) first"
            )
        if self.times > 1:
            return self._rotating_batch(epoch, position)
        shard, shards = self.shard
        rest = self.length - position
        if rest >= self.stride:
            size = self.batch_size or 1
            start = position + shard * size
            return Batch(epoch, start, start + size, position)
        start, stop = shard * rest // shards, (shard + 1) * rest // shards
        # Fewer samples than shards: some would get none, and take one that a neighbour has too.
        return Batch(epoch, position + start, position + max(stop, start + 1), position)

    def _rotating_batch(self, epoch: int, position: int) -> Batch:
        """The same sizes, but out of this shard's own uses, which follow each other."""
        first, uses = self.span
        start = position // self.stride * (self.batch_size or 1)
        return Batch(epoch, first + start, first + min(start + (self.batch_size or 1), uses), position)

    @cached_property
    def span(self) -> tuple[int, int]:
        """First position and number of positions of this shard, where each has its own in a row."""
        shard, shards = self.shard
        full, rest = divmod(self.positions, self.stride)
        size = full * (self.batch_size or 1)
        if self.drop_last or not rest:
            return shard * size, size
        start, stop = shard * rest // shards, (shard + 1) * rest // shards
        return shard * size + start, size + max(stop - start, 1)

    def batches(self, epoch: int, position: int = 0) -> Iterator[Batch]:
        """This shard's batches from the round at `position` to the end of the epoch."""
        while not self.is_over(position):
            yield self.batch(epoch, position)
            position = self.next_position(position)

    def indices(self, batch: Batch) -> Sequence[int]:
        """The dataset indices of a batch, as Python ints."""
        if self.times > 1:
            return self.rotated(batch.epoch).indices(batch.start, batch.stop)
        return _order(self.length, self.shuffle, self.seed, batch.epoch).indices(batch.start, batch.stop)

    def rotated(self, epoch: int) -> Rotated:
        """The order of this shard's uses, where samples rotate."""
        return _rotated(self, epoch)

    def batch_seed(self, batch: Batch) -> int:
        """A 64-bit seed for what is random in a batch: the same wherever and whenever the batch is made."""
        return extend(_seed_key(self.seed, batch.epoch), batch.start)


def sample_seed(seed: int, epoch: int, index: int) -> int:
    """A 64-bit seed for what is random in a sample that is kept, as it must not depend on its batch."""
    return extend(_sample_key(seed, epoch), index)


@lru_cache(maxsize=8)
def _sample_key(seed: int, epoch: int) -> int:
    return derive(_SAMPLE_SEED, seed, epoch)


@lru_cache(maxsize=8)
def _rotated(plan: Plan, epoch: int) -> Rotated:
    order = _order(plan.length, plan.shuffle, plan.seed, epoch)
    key = None if plan.shuffle is False else derive(_ROTATION_KEY, plan.seed, epoch)
    return Rotated(order, plan.span, plan.times, plan.rotating or plan.length, key)


@lru_cache(maxsize=8)
def _seed_key(seed: int, epoch: int) -> int:
    return derive(_BATCH_SEED, seed, epoch)


# The epoch that is being read and the one that is being prefetched, for train and validation plans at once.
@lru_cache(maxsize=8)
def _order(length: int, shuffle: bool | int, seed: int, epoch: int) -> Order:
    if shuffle is False:
        return Sequential(length)
    key = derive(_SHUFFLE_KEY, seed, epoch)
    return Chunked(length, Shuffled(length, key) if shuffle is True else Nearby(length, shuffle, key))


def _checked_shuffle(shuffle: object) -> bool | int:
    if isinstance(shuffle, bool):
        return shuffle
    window = _integer("shuffle", shuffle, least=1, write="True, False, or a window of 1 or more samples")
    # A window of 1 moves nothing. It is stored as False, since Python holds 1 to equal True.
    return False if window == 1 else window


def _checked_shard(shard: object) -> tuple[int, int]:
    if not isinstance(shard, tuple | list) or len(shard) != 2:
        raise TypeError(f"shard is {shard!r}: write shard=(index, count)")
    count = _integer("the shard count", shard[1], least=1, write="shard=(index, count) with a count of 1 or more")
    number = _integer("the shard index", shard[0], least=None, write="shard=(index, count) with two ints")
    if not 0 <= number < count:
        raise ValueError(
            f"shard index {number} is out of range for {count} shard{'s' * (count > 1)}: "
            f"write shard=(index, count) with 0 <= index < count"
        )
    return number, count


def _integer(name: str, value: Any, *, least: int | None, write: str) -> int:
    try:
        number = index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise TypeError(f"{name} is {value!r}, a {type(value).__name__} and not an int: write {write}")
    if least is not None and number < least:
        raise ValueError(f"{name} is {number}: write {write}")
    return number
