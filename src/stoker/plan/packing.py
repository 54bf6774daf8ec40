"""Packing: which sequence, or which piece of one, goes into which row of a fixed length.

Pure arithmetic on the lengths of the sequences of a window, so the same window always gives the same rows.
"""

from bisect import bisect_left, insort
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from stoker.plan.permutation import Positions

Long = Literal["split", "truncate", "drop"]


@dataclass(frozen=True, eq=False)
class Layout:
    """Pieces of sequences, row after row, and within a row from left to right.

    Attributes:
        length: Tokens in a row.
        count: Rows.
        rows: The row of each piece, rising.
        sequences: The sequence of which each piece is.
        starts: Where in its sequence each piece begins.
        sizes: Tokens in each piece.
    """

    length: int
    count: int
    rows: Positions
    sequences: Positions
    starts: Positions
    sizes: Positions

    @cached_property
    def firsts(self) -> Positions:
        """The first piece of each row, and the number of pieces."""
        return np.searchsorted(self.rows, np.arange(self.count + 1))

    @cached_property
    def padding(self) -> Positions:
        """Places at the end of each row that hold no token."""
        used = np.bincount(self.rows, self.sizes, self.count).astype(np.int64)
        return self.length - used


def lay_out(lengths: Positions, length: int, long: Long) -> Layout:
    """Packs sequences of these lengths into rows, best fit decreasing: the longest piece first, each into the row in
    which it leaves least space.

    A row stands where the longest of its pieces stands among all, and pieces of a row are in the order of their
    sequences. So rows of a shuffled window are shuffled, too: neither long nor short sequences come first.

    Args:
        lengths: Tokens of each sequence of the window; one without any is left out.
        length: Tokens in a row.
        long: What becomes of a sequence that is longer: pieces of ``length`` and the rest, its beginning, or nothing.

    Example:
        >>> layout = lay_out(np.array([3, 6, 2]), 5, "split")
        >>> [(row, sequence, start, size) for row, sequence, start, size in zip(
        ...     *(one.tolist() for one in (layout.rows, layout.sequences, layout.starts, layout.sizes)))]
        [(0, 0, 0, 3), (0, 2, 0, 2), (1, 1, 0, 5), (2, 1, 5, 1)]
    """
    sequences, starts, sizes = _pieces(lengths, length, long)
    openers = _best_fit(sizes, length)
    rows = np.unique(openers, return_inverse=True)[1].reshape(-1)
    order = np.argsort(rows, kind="stable")
    count = int(rows.max()) + 1 if len(rows) else 0
    return Layout(length, count, rows[order], sequences[order], starts[order], sizes[order])


def _pieces(lengths: Positions, length: int, long: Long) -> tuple[Positions, Positions, Positions]:
    """The sequence, the start and the size of each, in the order of the sequences."""
    if long == "split":
        counts = -(-lengths // length)
        sequences = np.repeat(np.arange(len(lengths)), counts)
        nth = np.arange(len(sequences)) - np.repeat(np.cumsum(counts) - counts, counts)
        starts = nth * length
        return sequences, starts, np.minimum(lengths[sequences] - starts, length)
    fits = (lengths > 0) & (lengths <= length) if long == "drop" else lengths > 0
    sequences = np.flatnonzero(fits)
    return sequences, np.zeros_like(sequences), np.minimum(lengths[sequences], length)


def _best_fit(sizes: Positions, length: int) -> Positions:
    """For each piece, the one that its row was begun with."""
    count = len(sizes)
    openers = np.arange(count)  # a piece that fills a row has one of its own
    order = np.argsort(-sizes, kind="stable")
    order = order[np.searchsorted(-sizes[order], -length, side="right") :]
    smallest = int(sizes.min(initial=length))
    spaces: list[int] = []  # of rows that are not full: space * count + the piece that began it, rising
    for piece, size in zip(order.tolist(), sizes[order].tolist(), strict=True):
        place = bisect_left(spaces, size * count)
        if place < len(spaces):
            space, opener = divmod(spaces.pop(place), count)
            openers[piece] = opener
        else:
            space, opener = length, piece
        if space - size >= smallest:
            insort(spaces, (space - size) * count + opener)
    return openers
