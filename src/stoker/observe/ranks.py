"""One slow rank among several: in training that is in step, all wait for the one that waits for its data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from stoker.observe.culprits import Culprit
from stoker.observe.diagnosis import Diagnosis, diagnose
from stoker.observe.rules import percent
from stoker.observe.stats import Stats

_LAGS = 0.1  # of the time: a rank that waits so much longer than the others holds them up


def compare_ranks(ranks: Sequence[Stats]) -> Diagnosis:
    """Says which of several ranks lags, and why.

    Each rank's ``loader.stats()`` can be pickled, so that ``torch.distributed.gather_object`` or the like brings them
    together. While one rank waits for data, the others wait for it in their own step: so it is the one that waits
    longest for data that holds all of them up.

    Args:
        ranks: What ``loader.stats()`` has returned on each rank, in order.

    Returns:
        The diagnosis of the rank that lags, with its number in ``rank``. If none does: of the one that waits longest.

    Raises:
        ValueError: There are no ranks.

    Example:
        >>> import stoker
        >>> with stoker.Loader(range(100), 10) as loader:
        ...     batches = list(loader)
        >>> stoker.compare_ranks([loader.stats(), loader.stats()]).rank
    """
    if not ranks:
        raise ValueError("compare_ranks([]): pass what loader.stats() has returned on each rank")
    found = [diagnose(stats) for stats in ranks]
    last = max(range(len(found)), key=lambda rank: found[rank].wait)
    own = found[last]
    others = [one.wait for rank, one in enumerate(found) if rank != last]
    if others and own.wait > median(others) + _LAGS:
        return replace(
            own,
            culprit=Culprit.SLOW_RANK,
            sentence=f"Rank {last} of {len(ranks)} lags: it waited for data {percent(own.wait)} of its time, the "
            f"others {percent(median(others))}. Of rank {last}: {own.sentence}",
            rank=last,
        )
    return replace(own, sentence=f"No rank lags. Of rank {last}, which waits longest: {own.sentence}")
