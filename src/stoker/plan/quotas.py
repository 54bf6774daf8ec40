"""Quotas: which of several sources each position belongs to, so that all keep to their shares all the time.

Sources hang as leaves in a binary tree. Of the first n positions of a node, its left child has n * p, rounded, where p
is its share of the node's weight; the right child has the others. So the source of any position, and how many
positions the source had before, are found on the way down from the root. The reasons, and how far counts can be from
their shares, are in `docs/design/mixtures.md`. Every number in this file is part of the frozen formula:
to change one is to raise `FORMULA`.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from math import inf
from typing import NamedTuple, TypeAlias

import numpy as np

from stoker.plan.permutation import Positions

_BITS = 64  # of a share: over 2**62 positions, what is rounded off comes to an eighth of a position
_ONE = 2**_BITS
_LOW = 2**32 - 1
_DIGITS = 6  # of what is owed: what shares are rounded by must not decide who is first
_COMPARED = 32  # leaves under a node whose splits are all compared; more are first cut into halves
_SUMS = (1.0, 1.02, 1.05, 1.1, 1.15, 1.2, 1.3, 1.5, 2.0, 3.0, float("inf"))  # that are tried, in `_splits`
_LEAST = 1e-300  # of a weight, where it is divided by

Tree: TypeAlias = "int | Node"
Halves: TypeAlias = "int | tuple[int, Halves, Halves]"  # a source; or the left half's share, and both halves


class Node(NamedTuple):
    """An inner node: of its first n positions, `left` has (n * share + phase) / 2**64, rounded down.

    Attributes:
        share: That of `left`, which with `phase` is in units of 2**-64.
        phase: A half, or more or less by what `left` is owed.
        owed: How much `left` is owed beyond its share of what the node is owed.
        left: The child with the heavier sources.
        right: The other one.
    """

    share: int
    phase: int
    owed: float
    left: Tree
    right: Tree


class SourceShare(NamedTuple):
    """What a source has of a span of positions.

    Attributes:
        source: Its number.
        before: How many positions it had before the first of these.
        places: Where they are in the span, in order.
    """

    source: int
    before: int
    places: Positions


class Quotas:
    """Shares out the positions 0, 1, 2, ... among sources, by weight.

    After any number n of positions each source has had n * weight of them, give or take one, or a little more for some
    weights: `farthest`. `exact_quotas.py` is without that.

    Args:
        weights: One for each source, 0 or more, in any scale; not all 0.
        owed: How many positions each source has had too few of before, by other weights: it has its next one earlier.

    Example:
        >>> Quotas((0.5, 0.25, 0.25)).assigned(0, 8)[0].tolist()
        [0, 1, 0, 2, 0, 1, 0, 2]
    """

    __slots__ = ("_owed", "_owed_to_all", "_tree")

    def __init__(self, weights: Sequence[float], owed: Sequence[float] = ()) -> None:
        self._owed = tuple(owed) or (0.0,) * len(weights)
        self._tree, self._owed_to_all = _built(_halves(tuple(map(float, weights))), self._owed)

    @property
    def farthest(self) -> float:
        """How far a source can be from its share at most; infinity, where it is owed more than it can be given."""
        farthest, nodes = 0.0, [(self._tree, 0.0)]
        while nodes:
            node, above = nodes.pop()  # above: the sum of its weight / weight of each inner node above it but the root
            if isinstance(node, int):
                farthest = max(farthest, (1 + above) / 2)
            elif abs(node.owed) > 0.5:
                return inf
            else:
                own, share = above + (node is not self._tree), node.share / _ONE
                nodes += [(node.left, own * share), (node.right, own * (1 - share))]
        return farthest

    def counts(self, n: int) -> list[int]:
        """How many of the first n positions each source has."""
        found = [0] * len(self._owed)
        nodes = [(self._tree, n)]
        while nodes:
            node, of = nodes.pop()
            if isinstance(node, int):
                found[node] = of
            else:
                left = _to_left_of(of, node)
                nodes += [(node.left, left), (node.right, of - left)]
        return found

    def owed(self, n: int) -> list[float]:
        """How many positions each source has had too few of after the first n, with what it was owed before."""
        return [round(-error, _DIGITS) + 0.0 for error in self.errors(n)]  # without a sign, if it is 0

    def errors(self, n: int) -> list[float]:
        """How many positions each source has had too many of after the first n, with what it was owed before."""
        found, nodes = [-owed for owed in self._owed], [(self._tree, n, self._owed_to_all)]
        while nodes:
            node, of, owed = nodes.pop()
            if isinstance(node, int):
                found[node] = -owed
                continue
            left = _to_left_of(of, node)
            rest = (of * node.share + node.phase) % _ONE - node.phase  # by which its count was rounded down
            to_left = node.share / _ONE * owed + node.owed + rest / _ONE
            nodes += [(node.left, left, to_left), (node.right, of - left, owed - to_left)]
        return found

    def shared_out(self, start: int, stop: int) -> list[SourceShare]:
        """The positions [start, stop), by source."""
        found, nodes = [], [(self._tree, start, np.arange(stop - start, dtype=np.int64))]
        while nodes:
            node, before, places = nodes.pop()
            if isinstance(node, int):
                found.append(SourceShare(node, before, places))
            elif places.size:
                to_left = _are_to_left(before, places.size, node)
                left = _to_left_of(before, node)
                nodes.append((node.left, left, places[to_left]))
                nodes.append((node.right, before - left, places[~to_left]))
        return found

    def assigned(self, start: int, stop: int) -> tuple[Positions, Positions]:
        """The sources of positions [start, stop), and how many positions each of them had before this one."""
        return assigned(self.shared_out(start, stop), stop - start)


def assigned(shares: Sequence[SourceShare], size: int) -> tuple[Positions, Positions]:
    """The same shares, position by position: the source, and its count before."""
    sources, counts = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    for source, before, places in shares:
        sources[places] = source
        counts[places] = np.arange(before, before + places.size)
    return sources, counts


def _to_left_of(n: int, node: Node) -> int:
    """How many of the first n positions of a node its left child has."""
    return (n * node.share + node.phase) >> _BITS


def _are_to_left(before: int, size: int, node: Node) -> np.typing.NDArray[np.bool_]:
    """Which of `size` positions of a node, after its first `before`, its left child has.

    The product of a position and a share has up to 128 bits; of what it grows by, two halves of 64 bits are enough.
    """
    rest = (before * node.share + node.phase) % _ONE
    steps = np.arange(size + 1, dtype=np.uint64)
    low = steps * np.uint64(node.share & _LOW)
    low += np.uint64(rest & _LOW)
    low >>= np.uint64(32)
    steps *= np.uint64(node.share >> 32)
    steps += np.uint64(rest >> 32)
    steps += low
    steps >>= np.uint64(32)
    return np.not_equal(steps[1:], steps[:-1])


@lru_cache(maxsize=64)
def _halves(weights: tuple[float, ...]) -> Halves:
    """The tree without what is owed: it follows from the weights alone, and takes far longer to find than the rest."""
    # As decimals: 0.1 is a tenth, and not the nearest number that a float can hold.
    exact = [Fraction(repr(weight)) for weight in weights]
    order = sorted(
        (source for source, weight in enumerate(exact) if weight), key=lambda source: (-exact[source], source)
    )
    sums = [Fraction(0), *accumulate(exact[source] for source in order)]
    splits = _splits([float(part / sums[-1]) for part in sums])

    def build(first: int, last: int) -> Halves:
        if last == first + 1:
            return order[first]
        cut = splits[first, last]
        share = (sums[cut] - sums[first]) / (sums[last] - sums[first])
        return min(max(round(share * _ONE), 1), _ONE - 1), build(first, cut), build(cut, last)

    return build(0, len(order))


def _built(halves: Halves, owed: Sequence[float]) -> tuple[Tree, float]:
    """The tree, and what all its sources together are owed.

    Of what a node is owed, its left child has its share as of any position. If it is owed more, it has its next
    position as much earlier; but a half of one at most, since no child has a position before the node's first.
    """
    if isinstance(halves, int):
        return halves, owed[halves]
    share, (left, to_left), (right, to_right) = halves[0], _built(halves[1], owed), _built(halves[2], owed)
    more = to_left - share / _ONE * (to_left + to_right)
    phase = min(max(_ONE // 2 + round(more * _ONE), 0), _ONE - 1)
    return Node(share, phase, more, left, right), to_left + to_right


def _splits(sums: list[float]) -> dict[tuple[int, int], int]:
    """Where to cut each node, a run [first, last) of the sources from the heaviest to the lightest, in two.

    A source is at most (1 + the sum of its weight / weight of each inner node above it but the root) / 2 from its
    share: each node rounds by half a position at most, and hands down its error in proportion. So the largest of these
    sums, over all sources, should be small.
    """
    splits: dict[tuple[int, int], int] = {}
    nodes = [(0, len(sums) - 1, 0.0)]
    while nodes:
        first, last, above = nodes.pop()  # above: the sum of 1 / weight of each inner node above it but the root
        own = 1 / max(sums[last] - sums[first], _LEAST) if last - first < len(sums) - 1 else 0.0
        if last - first <= _COMPARED:
            tried = (_compared(sums, first, last, most, above + own) for most in _SUMS)
            splits |= next(found for found in tried if found is not None)
        else:
            middle = (sums[first] + sums[last]) / 2
            cut = min(range(first + 1, last), key=lambda k: abs(sums[k] - middle))
            splits[first, last] = cut
            nodes += [(first, cut, above + own), (cut, last, above + own)]
    return splits


def _compared(sums: list[float], first: int, last: int, most: float, above: float) -> dict[tuple[int, int], int] | None:
    """The splits of a node and all below it, if no source's sum need exceed `most`; else None.

    `above` is the node's own share of the sums, and that of those above it.
    """
    splits: dict[tuple[int, int], int] = {}
    slack: dict[tuple[int, int], float] = {}  # of a node: what `above` may be
    for size in range(1, last - first + 1):
        for start in range(first, last - size + 1):
            stop = start + size
            if size == 1:
                slack[start, stop] = most / max(sums[stop] - sums[start], _LEAST)
                continue
            best, cut = max((min(slack[start, k], slack[k, stop]), -k) for k in range(start + 1, stop))
            splits[start, stop] = -cut
            slack[start, stop] = best if size == last - first else best - 1 / max(sums[stop] - sums[start], _LEAST)
    return splits if slack[first, last] >= above else None
