"""Replacements: which samples take the place of one that fails, in the order in which they are tried."""

from __future__ import annotations

from collections.abc import Iterator

from stoker.plan.domains import Domain
from stoker.plan.permutation import derive, extend

MOST_REPLACEMENTS = 8  # tried for one sample: if so many fail, something else is wrong


def replacements(seed: int, epoch: int, index: int, among: range) -> Iterator[int]:
    """Other indices of that range, each once: all of them if they are few, and ``MOST_REPLACEMENTS`` if not.

    They are drawn from all over the range, as neighbours of a broken sample are often broken, too.

    >>> list(replacements(seed=0, epoch=3, index=1, among=range(4)))
    [2, 0, 3]
    """
    key, tried = derive(Domain.REPLACEMENT, seed, epoch, index), {index}
    most = min(MOST_REPLACEMENTS, len(among) - (index in among))
    draw = 0
    while len(tried) <= most:
        drawn = among[extend(key, draw) % len(among)]
        draw += 1
        if drawn not in tried:
            tried.add(drawn)
            yield drawn
