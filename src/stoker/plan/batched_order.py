"""Batches of sizes of their own, in the order of an epoch, and which shard has which of them."""

import numpy as np

from stoker.plan.ordering import LastRound
from stoker.plan.permutation import Positions


class BatchedOrder:
    """Samples in an order, cut into batches.

    Args:
        samples: Dataset indices.
        bounds: Where each batch begins among them; the last one is the end.
        tokens: In each batch.
    """

    __slots__ = ("_dealt", "_samples", "_tokens", "bounds")

    def __init__(self, samples: Positions, bounds: Positions, tokens: Positions) -> None:
        self._samples, self.bounds, self._tokens = samples, bounds, tokens
        self._dealt: tuple[tuple[int, int, LastRound], Positions] | None = None

    def indices(self, start: int, stop: int) -> list[int]:
        return self._samples[start:stop].tolist()  # type: ignore[no-any-return]

    def at(self, positions: Positions) -> Positions:
        return self._samples[positions]

    def turns(self, position: int, shards: int, last: LastRound) -> Positions:
        """Of the round that begins with that batch, the place of each shard in it; it has a batch for each.

        All rounds of the epoch are dealt out at once, those that begin so many batches apart: it follows from the
        position alone, also where a run goes on with another number of shards.
        """
        key = position % shards, shards, last
        dealt = self._dealt  # one attribute, replaced as a whole: threads may share an order
        if dealt is None or dealt[0] != key:
            dealt = self._dealt = key, _dealt(self._tokens[key[0] :], shards, last)
        places: Positions = dealt[1][position // shards]
        return places


def divided(shard: int, rest: int, shards: int) -> tuple[int, int, int]:
    """Of a last round with fewer batches than shards: a shard's batch, and its part of so many parts of that."""
    batch = shard * rest // shards
    first, after = -(-batch * shards // rest), -(-(batch + 1) * shards // rest)  # the shards that have it
    return batch, shard - first, after - first


def _dealt(tokens: Positions, shards: int, last: LastRound) -> Positions:
    """Of each full round, the place of each shard, so that all have like numbers of tokens in the end.

    The last round, which is not full, is given; then comes the round whose batches differ most, and so on. In each,
    the shard that has the fewest tokens has the batch with the most.
    """
    rounds = len(tokens) // shards
    places, had = np.empty((rounds, shards), dtype=np.int64), _of_last_round(tokens[rounds * shards :], shards, last)
    table = tokens[: rounds * shards].reshape(rounds, shards)
    by_tokens = np.argsort(-table, axis=1, kind="stable")
    for nth in np.argsort(-np.ptp(table, axis=1), kind="stable").tolist() if rounds else ():
        places[nth, np.argsort(had, kind="stable")] = by_tokens[nth]
        had += table[nth, places[nth]]
    return places


def _of_last_round(tokens: Positions, shards: int, last: LastRound) -> Positions:
    """The tokens of each shard in it."""
    had, rest = np.zeros(shards, dtype=np.int64), len(tokens)
    if last == "whole":
        had[:rest] = tokens
    elif last == "divided" and rest:
        for shard in range(shards):
            batch, _, parts = divided(shard, rest, shards)
            had[shard] = tokens[batch] // parts
    return had
