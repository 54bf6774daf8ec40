"""Shares of rounds: which part of each round one shard has."""

from stoker.plan.permutation import Positions


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

    def of_last_round(self, rest: int) -> tuple[int, int]:
        """Of a round that has so many positions and is not full: where this shard's part begins and ends."""
        shard, shards = self._shard
        start, stop = shard * rest // shards, (shard + 1) * rest // shards
        if rest >= shards:
            return start, stop
        # Fewer samples than shards: some would get none, and take one that a neighbour has too; or none indeed.
        return (start, start + 1) if self._even else (min(shard, rest), min(shard + 1, rest))

    def of_batches(self, bounds: Positions, position: int, rest: int) -> tuple[int, int]:
        """Of a round of whole batches: this shard's own, or, in the last round, perhaps a part of one.

        Args:
            bounds: Where each batch begins among the samples.
            position: The number of the round's first batch.
            rest: Batches from there to the end of the epoch.

        Returns:
            Where it begins and ends among the samples.
        """
        shard, shards = self._shard
        is_shared = rest < shards and self._even
        nth = shard * rest // shards if is_shared else shard
        start, stop = bounds[position + nth : position + nth + 2].tolist()
        if not is_shared:
            return start, stop
        first, last = -(-nth * shards // rest), -(-(nth + 1) * shards // rest)  # the shards that have it
        part, parts, size = shard - first, last - first, stop - start
        begin = start + part * size // parts
        return begin, max(start + (part + 1) * size // parts, begin + 1)

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
