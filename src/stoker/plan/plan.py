"""The plan: how an epoch is cut into rounds, and a round into one batch for each shard."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from operator import index
from typing import Any, NamedTuple, cast

from stoker.plan.domains import Domain
from stoker.plan.order import Order, plain_order
from stoker.plan.ordering import Batched, BatchOrdering, Ordering, holds_batches
from stoker.plan.permutation import derive, extend
from stoker.plan.rotated import Rotated

PLAN_VERSION = 1  # raised when any (plan, epoch, position) would give other indices or another seed

MAX_EPOCH = 2**53 - 1  # to go to; up to here, every reader of JSON keeps a number exactly

_KEPT_ORDERS = 2  # the epoch that is being read and the one that is being prefetched

_LARGEST = 2**63 - 1  # of any number but the seed: they travel to workers as 64 bits
_REORDERED = 2**62  # positions, where they are shuffled or rotate: what permutation.py can do
_SEED_BITS = 4096  # of a seed: Python refuses to write much longer numbers as text, which a state is


class Batch(NamedTuple):
    """One shard's share of a round.

    Attributes:
        epoch: The epoch it belongs to.
        start: The global position of its first sample; where samples rotate, its first use.
        stop: The global position after its last sample, or use.
        position: The global position where its round begins, the same for all shards.
    """

    epoch: int
    start: int
    stop: int
    position: int


@dataclass(frozen=True)
class Plan:
    """Which batches there are and in what order: a pure function of these fields.

    A round takes the next `batch_size * shards` positions of the epoch's global order, and shard i gets the
    i-th run of `batch_size` of them. What is left for the last round is split evenly, so that every shard has
    the same number of batches. Where that is fewer samples than shards, either some of them are given to two shards or
    more, or (`even_shards=False`) the first shards have one each and the others have no batch in that round.

    Args:
        length: Samples in the dataset.
        batch_size: Samples in a batch; None for single samples.
        shuffle: True for the whole dataset, or an int window: no sample moves that far or further.
        seed: Any int.
        drop_last: Leave out a last round that not every shard can fill.
        shard: (index, count).
        times: Uses of each sample in an epoch.
        rotating: Samples of this shard that rotate at the same time, where they are used more than once; None: all.
        even_shards: False: nothing is repeated, so that some shards may have one batch fewer than others.
        order: Which sample stands at which position, and how many positions there are, perhaps by epoch; None: each
            sample once, as ``shuffle`` says. Methods with an ``epoch`` need it only where there is such an order.

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
    even_shards: bool = True
    order: Ordering | None = None

    def __post_init__(self) -> None:
        for flag in ("drop_last", "even_shards"):
            if not isinstance(getattr(self, flag), bool):
                raise TypeError(f"{flag} is {getattr(self, flag)!r}: pass True or False")
        # The fields are stored as plain ints, so that equal plans pickle, hash and print alike.
        checked = {
            "length": _integer("length", self.length, least=0, remedy="the number of samples, 0 or more"),
            "batch_size": None
            if self.batch_size is None
            else _integer("batch_size", self.batch_size, least=1, remedy="1 or more, or None for single samples"),
            "shuffle": _checked_shuffle(self.shuffle),
            "seed": checked_seed(self.seed),
            "shard": _checked_shard(self.shard),
            "times": _integer("times", self.times, least=1, remedy="how often each sample is used, 1 or more"),
            "rotating": None
            if self.rotating is None
            else _integer("rotating", self.rotating, least=1, remedy="a number of samples, 1 or more"),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        self._check_size()

    def _check_size(self) -> None:
        if self.order is not None and self.times > 1:
            raise ValueError(
                f"each sample is to be used {self.times} times (rotation=), in an order, as that of a Mix, which says "
                f"itself how often a sample comes: leave rotation out, and pass cache= to make samples once"
            )
        most = _LARGEST if self.shuffle is False and self.times == 1 else _REORDERED
        if self.length * self.times > most:
            how = f"used {self.times} times" if self.times > 1 else "shuffled"
            raise ValueError(f"a dataset of {self.length} samples, {how}, is too long: {most} in all can be numbered")
        if self.stride > _LARGEST:
            raise ValueError(
                f"batches of {self.batch_size} samples on {self.shard[1]} shards are too large: all shards together "
                f"can have {_LARGEST} at a time"
            )

    def __len__(self) -> int:
        """Batches in an epoch of this shard; where epochs differ, in the first one."""
        return self.batch_count(0)

    def batch_count(self, epoch: int) -> int:
        """Batches in that epoch of this shard."""
        full, rest = divmod(self.positions_in(epoch), self.stride)
        has_last = rest > 0 and not self.drop_last and not self.has_none_at(full * self.stride, epoch)
        return full + has_last

    @property
    def rounds(self) -> int:
        """Rounds in an epoch. A shard has a batch in each, but perhaps in the last one if shards are not even."""
        full, rest = divmod(self.positions, self.stride)
        return full + (rest > 0 and not self.drop_last)

    @cached_property
    def positions(self) -> int:
        """Positions in an epoch, over all shards: each use of a sample is one. Of epoch 0, where they differ."""
        return self.length * self.times if self.order is None else self.positions_in(0)

    def positions_in(self, epoch: int) -> int:
        """Positions in that epoch, over all shards."""
        order = self.order
        return self.positions if order is None else order.positions(self.length, self.seed, epoch)

    def share_in(self, epoch: int) -> int:
        """Samples in that epoch of this shard, each as often as it is used."""
        if holds_batches(self.order):
            return sum(batch.stop - batch.start for batch in self.batches(epoch))
        return self._span(self.positions_in(epoch))[1]

    @cached_property
    def _is_plain(self) -> bool:
        return self.times == 1 and self.order is None

    @cached_property
    def stride(self) -> int:
        """Positions in a full round, over all shards."""
        return (self.batch_size or 1) * self.shard[1]

    def is_over(self, position: int, epoch: int = 0) -> bool:
        """Whether no round begins at `position`: the epoch ends there."""
        rest = self.positions_in(epoch) - position
        return rest <= 0 or (self.drop_last and rest < self.stride)

    def has_none_at(self, position: int, epoch: int = 0) -> bool:
        """Whether this shard has no batch in a round at `position`: none begins there, or only others have one."""
        return position >= self.own_end(epoch)

    def own_end(self, epoch: int) -> int:
        """From here on this shard has no batch: too few positions are left, if any."""
        return (self.positions if self.order is None else self.positions_in(epoch)) - self._too_few

    @cached_property
    def _too_few(self) -> int:
        """So many positions, or fewer, left for a round give this shard no batch."""
        too_few = self.stride - 1 if self.drop_last else 0
        return too_few if self.even_shards else max(too_few, self.shard[0])

    def next_position(self, position: int, epoch: int = 0) -> int:
        """Where the round after the one at `position` begins, or the epoch ends."""
        following, end = position + self.stride, self.positions if self.order is None else self.positions_in(epoch)
        return following if following < end else end

    def batch(self, epoch: int, position: int) -> Batch:
        """This shard's batch of the round that begins at global position `position`: it must have one there.

        Any position within the epoch will do, as a run may resume with another number of shards; but where samples
        rotate, each shard has its own, and only multiples of `stride` will do.
        """
        positions = self.positions if self.order is None else self.positions_in(epoch)
        if position < 0 or position >= positions - self._too_few:
            raise ValueError(
                f"no round begins at position {position} of an epoch of {positions} positions in rounds of "
                f"{self.stride}, or shard {self.shard} has no batch in it: ask has_none_at(position) first"
            )
        if self.times > 1:
            return self._rotating_batch(epoch, position)
        rest = positions - position
        if not self._is_plain and holds_batches(self.order):
            return self._own_part(self.order, epoch, position, rest)
        if rest >= self.stride:
            size = self.batch_size or 1
            start = position + self.shard[0] * size
            return Batch(epoch, start, start + size, position)
        start, stop = self._part_of(rest)
        return Batch(epoch, position + start, position + stop, position)

    def _part_of(self, rest: int) -> tuple[int, int]:
        """This shard's part of the last round, which has so many positions and is not full."""
        shard, shards = self.shard
        start, stop = shard * rest // shards, (shard + 1) * rest // shards
        if rest >= shards:
            return start, stop
        # Fewer samples than shards: some would get none, and take one that a neighbour has too; or none indeed.
        return (start, start + 1) if self.even_shards else (min(shard, rest), min(shard + 1, rest))

    def _own_part(self, order: BatchOrdering, epoch: int, position: int, rest: int) -> Batch:
        """This shard's batch of a round of whole batches; in the last round perhaps a part of one."""
        bounds, (shard, shards) = cast(Batched, self._order_in(order, epoch)).bounds, self.shard
        is_shared = rest < shards and self.even_shards
        nth = shard * rest // shards if is_shared else shard
        start, stop = bounds[position + nth : position + nth + 2].tolist()
        if not is_shared:
            return Batch(epoch, start, stop, position)
        first, last = -(-nth * shards // rest), -(-(nth + 1) * shards // rest)  # the shards that have it
        part, parts, size = shard - first, last - first, stop - start
        begin = start + part * size // parts
        return Batch(epoch, begin, max(start + (part + 1) * size // parts, begin + 1), position)

    def _rotating_batch(self, epoch: int, position: int) -> Batch:
        """The same sizes, but out of this shard's own uses, which follow each other."""
        first, uses = self.span
        start = position // self.stride * (self.batch_size or 1)
        return Batch(epoch, first + start, first + min(start + (self.batch_size or 1), uses), position)

    @cached_property
    def span(self) -> tuple[int, int]:
        """First position and number of positions of this shard, where each has its own in a row."""
        return self._span(self.positions)

    def _span(self, positions: int) -> tuple[int, int]:
        full, rest = divmod(positions, self.stride)
        size = full * (self.batch_size or 1)
        first = self.shard[0] * size
        if self.drop_last or not rest:
            return first, size
        start, stop = self._part_of(rest)
        return first + start, size + stop - start

    def batches(self, epoch: int, position: int = 0) -> Iterator[Batch]:
        """This shard's batches from the round at `position` to the end of the epoch."""
        # Full rounds, in which each shard has a batch, without any call.
        if self.times == 1 and position >= 0 and not holds_batches(self.order):
            size, stride, last = self.batch_size or 1, self.stride, self.positions_in(epoch) - self.stride
            before = self.shard[0] * size
            while position <= last:
                start = position + before
                yield Batch(epoch, start, start + size, position)
                position += stride
        while not self.has_none_at(position, epoch):
            yield self.batch(epoch, position)
            position = self.next_position(position, epoch)

    def indices(self, batch: Batch) -> Sequence[int]:
        """The dataset indices of a batch, as Python ints."""
        if self._is_plain:
            return plain_order(self.length, self.shuffle, self.seed, batch.epoch).indices(batch.start, batch.stop)
        if self.order is None:
            return self.rotated(batch.epoch).indices(batch.start, batch.stop)
        return self._order_in(self.order, batch.epoch).indices(batch.start, batch.stop)

    def _order_in(self, order: Ordering, epoch: int) -> Order:
        known = self._orders
        found = known.get(epoch)
        if found is None:  # threads may share a plan, and then find it twice
            found = known[epoch] = order.of_epoch(self.length, self.shuffle, self.seed, epoch)
            while len(known) > _KEPT_ORDERS:
                known.pop(next(iter(known)), None)
        return found

    @cached_property
    def _orders(self) -> dict[int, Order]:
        return {}

    def __getstate__(self) -> dict[str, Any]:
        """Without what is kept of epochs."""
        return {name: value for name, value in vars(self).items() if name != "_orders"}

    def rotated(self, epoch: int) -> Rotated:
        """The order of this shard's uses, where samples rotate."""
        return _rotated(self, epoch)

    def batch_seed(self, batch: Batch) -> int:
        """A 64-bit seed for what is random in a batch: the same wherever and whenever the batch is made."""
        return extend(_seed_key(self.seed, batch.epoch), batch.start)

    def of_length(self, length: int) -> "Plan":
        """The same for a dataset of that length."""
        return self if length == self.length else replace(self, length=length)


def batch_seed(seed: int, batch: Batch) -> int:
    """What `Plan.batch_seed` is for a plan with that seed."""
    return extend(_seed_key(seed, batch.epoch), batch.start)


def sample_seed(seed: int, epoch: int, index: int) -> int:
    """A 64-bit seed for what is random in a sample that is kept, as it must not depend on its batch."""
    return extend(_sample_key(seed, epoch), index)


@lru_cache(maxsize=8)
def _sample_key(seed: int, epoch: int) -> int:
    return derive(Domain.SAMPLE_SEED, seed, epoch)


@lru_cache(maxsize=8)
def _rotated(plan: Plan, epoch: int) -> Rotated:
    order = plain_order(plan.length, plan.shuffle, plan.seed, epoch)
    key = None if plan.shuffle is False else derive(Domain.ROTATION, plan.seed, epoch)
    return Rotated(order, plan.span, plan.times, plan.rotating or plan.length, key)


@lru_cache(maxsize=8)
def _seed_key(seed: int, epoch: int) -> int:
    return derive(Domain.BATCH_SEED, seed, epoch)


def _checked_shuffle(shuffle: object) -> bool | int:
    if isinstance(shuffle, bool):
        return shuffle
    window = _integer("shuffle", shuffle, least=1, remedy="True, False, or a window of 1 or more samples")
    # A window of 1 moves nothing. It is stored as False, since Python holds 1 to equal True.
    return False if window == 1 else window


def checked_seed(seed: object) -> int:
    """As a plain int."""
    number = _integer("seed", seed, least=None, most=None, remedy="any int")
    if number.bit_length() > _SEED_BITS:
        raise ValueError(f"the seed has {number.bit_length()} bits: pass an int of {_SEED_BITS} bits at most")
    return number


def _checked_shard(shard: object) -> tuple[int, int]:
    if not isinstance(shard, tuple | list) or len(shard) != 2:
        raise TypeError(f"shard is {shard!r}: pass shard=(index, count)")
    count = _integer("the shard count", shard[1], least=1, remedy="shard=(index, count) with a count of 1 or more")
    number = _integer("the shard index", shard[0], least=None, remedy="shard=(index, count) with two ints")
    if not 0 <= number < count:
        raise ValueError(
            f"shard index {number} is out of range for {count} shard{'s' * (count > 1)}: "
            f"pass shard=(index, count) with 0 <= index < count"
        )
    return number, count


def _integer(name: str, value: Any, *, least: int | None, most: int | None = _LARGEST, remedy: str) -> int:
    try:
        number = index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise TypeError(f"{name} is {value!r}, a {type(value).__name__} and not an int: pass {remedy}")
    if least is not None and number < least:
        raise ValueError(f"{name} is {number}: pass {remedy}")
    if most is not None and number > most:
        raise ValueError(f"{name} is an int of {number.bit_length()} bits, and {most} is the largest: pass {remedy}")
    return number
