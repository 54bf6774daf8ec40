"""Shares of rounds: which part of each round one shard has."""

from stoker.plan.batched_order import divided
from stoker.plan.ordering import Batched, LastRound


class RoundShares:
    """One shard's share of each round: arithmetic on positions, whatever stands there.

    Args:
        size: Positions in a batch.
        shard: (index, count).
        drop_last: A last round that not every shard can fill is left out.
        even: Every shard has a part of the last round, also where there are fewer positions than shards.

    Attributes:
        stride: Positions in a full round, over all shards.
        too_few: So many positions, or fewer, left for a round give this shard no batch.
    """

    __slots__ = ("_drops_last", "_even", "_shard", "size", "stride", "too_few")

    def __init__(self, size: int, shard: tuple[int, int], *, drop_last: bool, even: bool) -> None:
        self.size, self.stride = size, size * shard[1]
        self._shard, self._drops_last, self._even = shard, drop_last, even
        too_few = self.stride - 1 if drop_last else 0
        self.too_few = too_few if even else max(too_few, shard[0])

    def of_full_round(self, order: Batched | None, position: int) -> tuple[int, int]:
        """Of the round that begins there, where this shard's batch begins and ends: in turn, or as the order says."""
        place, shards = self._shard
        if order is not None and shards > 1:
            place = int(order.turns(position // self.size, shards, "dropped")[place])
        start = position + place * self.size
        return start, start + self.size

    def of_last_round(self, rest: int) -> tuple[int, int]:
        """Of a round that has so many positions and is not full: where this shard's part begins and ends."""
        shard, shards = self._shard
        start, stop = shard * rest // shards, (shard + 1) * rest // shards
        if rest >= shards:
            return start, stop
        # Fewer samples than shards: some would get none, and take one that a neighbour has too; or none indeed.
        return (start, start + 1) if self._even else (min(shard, rest), min(shard + 1, rest))

    def of_batches(self, order: Batched, position: int, rest: int) -> tuple[int, int]:
        """Of a round of whole batches: this shard's own, or, in the last round, perhaps a part of one.

        Args:
            order: Of the epoch.
            position: The number of the round's first batch.
            rest: Batches from there to the end of the epoch.

        Returns:
            Where it begins and ends among the samples.
        """
        shard, shards = self._shard
        if rest >= shards:
            place = int(order.turns(position, shards, self._last_round)[shard]) if shards > 1 else 0
            batch, part, parts = place, 0, 1
        else:
            batch, part, parts = divided(shard, rest, shards) if self._even else (shard, 0, 1)
        start, stop = order.bounds[position + batch : position + batch + 2].tolist()
        begin = start + part * (stop - start) // parts
        # A sample is in several parts, if there are fewer samples than parts.
        return begin, max(start + (part + 1) * (stop - start) // parts, begin + 1) if parts > 1 else stop

    @property
    def _last_round(self) -> LastRound:
        if self._drops_last:
            return "dropped"
        return "divided" if self._even else "whole"

    def in_a_row(self, positions: int) -> tuple[int, int]:
        """First position and number of positions of this shard in an epoch, where each shard has its own in a row."""
        full, rest = divmod(positions, self.stride)
        size = full * self.size
        first = self._shard[0] * size
        if self._drops_last or not rest:
            return first, size
        start, stop = self.of_last_round(rest)
        return first + start, size + stop - start

    def of_uses(self, span: tuple[int, int], position: int) -> tuple[int, int]:
        """Of the round at that position, where the shard has its own positions in a row: ``in_a_row``."""
        first, count = span
        start = position // self.stride * self.size
        return first + start, first + min(start + self.size, count)
