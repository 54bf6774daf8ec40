"""The plan: how an epoch is cut into rounds, and a round into one batch for each shard."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import NamedTuple, cast

from stoker.plan.domains import Domain
from stoker.plan.epoch_orders import EpochOrders
from stoker.plan.fields import check_size, checked_fields
from stoker.plan.order import plain_order
from stoker.plan.ordering import Batched, Ordering, deals_batches, holds_batches
from stoker.plan.permutation import derive, extend
from stoker.plan.rotated import Rotated
from stoker.plan.round_shares import RoundShares

PLAN_VERSION = 1  # raised when any (plan, epoch, position) would give other indices or another seed

MAX_EPOCH = 2**53 - 1  # to go to; up to here, every reader of JSON keeps a number exactly


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
        # The fields are stored as plain ints, so that equal plans pickle, hash and print alike.
        for name, value in checked_fields(self).items():
            object.__setattr__(self, name, value)
        check_size(self)

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
        return self._shares.in_a_row(self.positions_in(epoch))[1]

    @cached_property
    def stride(self) -> int:
        """Positions in a full round, over all shards."""
        return self._shares.stride

    @cached_property
    def _shares(self) -> RoundShares:
        return RoundShares(self.batch_size or 1, self.shard, drop_last=self.drop_last, even=self.even_shards)

    def is_over(self, position: int, epoch: int = 0) -> bool:
        """Whether no round begins at `position`: the epoch ends there."""
        rest = self.positions_in(epoch) - position
        return rest <= 0 or (self.drop_last and rest < self.stride)

    def has_none_at(self, position: int, epoch: int = 0) -> bool:
        """Whether this shard has no batch in a round at `position`: none begins there, or only others have one."""
        return position >= self.own_end(epoch)

    def own_end(self, epoch: int) -> int:
        """From here on this shard has no batch: too few positions are left, if any."""
        return (self.positions if self.order is None else self.positions_in(epoch)) - self._shares.too_few

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
        if position < 0 or position >= positions - self._shares.too_few:
            raise ValueError(
                f"no round begins at position {position} of an epoch of {positions} positions in rounds of "
                f"{self.stride}, or shard {self.shard} has no batch in it: ask has_none_at(position) first"
            )
        rest, shares = positions - position, self._shares
        if self.times > 1:
            start, stop = shares.of_uses(self.span, position)
        elif self.order is not None and holds_batches(self.order):
            start, stop = shares.of_batches(cast(Batched, self._orders.of(epoch)), position, rest)
        elif rest >= shares.stride:
            dealt = cast(Batched, self._orders.of(epoch)) if deals_batches(self.order) else None
            start, stop = shares.of_full_round(dealt, position)
        else:
            first, last = shares.of_last_round(rest)
            start, stop = position + first, position + last
        return Batch(epoch, start, stop, position)

    @cached_property
    def span(self) -> tuple[int, int]:
        """First position and number of positions of this shard, where each has its own in a row."""
        return self._shares.in_a_row(self.positions)

    def batches(self, epoch: int, position: int = 0) -> Iterator[Batch]:
        """This shard's batches from the round at `position` to the end of the epoch."""
        # Full rounds, in which each shard has a batch, without any call.
        if self.times == 1 and position >= 0 and not deals_batches(self.order):
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
        if self.order is not None:
            return self._orders.of(batch.epoch).indices(batch.start, batch.stop)
        if self.times > 1:
            return rotation_of(self, batch.epoch).indices(batch.start, batch.stop)
        return plain_order(self.length, self.shuffle, self.seed, batch.epoch).indices(batch.start, batch.stop)

    @cached_property
    def _orders(self) -> EpochOrders:
        assert self.order is not None
        return EpochOrders(self.order, self.length, self.shuffle, self.seed)

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
def rotation_of(plan: Plan, epoch: int) -> Rotated:
    """The order of the shard's uses, where samples rotate."""
    order = plain_order(plan.length, plan.shuffle, plan.seed, epoch)
    key = None if plan.shuffle is False else derive(Domain.ROTATION, plan.seed, epoch)
    return Rotated(order, plan.span, plan.times, plan.rotating or plan.length, key)


@lru_cache(maxsize=8)
def _seed_key(seed: int, epoch: int) -> int:
    return derive(Domain.BATCH_SEED, seed, epoch)
