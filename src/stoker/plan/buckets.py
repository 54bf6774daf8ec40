"""``Buckets``: batches of samples of like length, perhaps within a budget of tokens.

Every number in this file is part of the frozen formula: to change one is to raise `_FORMULA`.
"""

from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt

from stoker.counts import BOOLS
from stoker.plan.batched_order import BatchedOrder
from stoker.plan.domains import Domain
from stoker.plan.given import digest_of
from stoker.plan.order import Shuffled
from stoker.plan.permutation import Positions, derive

_FORMULA = 2  # raised when any batch would have other samples, or go to another shard
_SPREAD = 1.06  # the longest of a bucket against the shortest, where we choose the edges: 3 % of padding
_FEW = 32  # samples in a batch; where so few fit into the budget, each number of them has a bucket of its own
# Batches with like numbers of tokens that come together: shards take turns in them. Fewer where all batches have one
# size, as those with like numbers of tokens are of like length then, too.
_ALIKE, _ALIKE_IN_LENGTH = 32, 8


class Buckets:
    """Batches of samples of like length, so that little is padded: ``Loader(dataset, 32, order=Buckets(lengths))``.

    Each sample comes once in an epoch. With ``shuffle=True`` it comes with others of its bucket in each epoch, and
    batches come in a random order. All of it is computed from the lengths, the seed and the epoch, so that it is the
    same for any number of workers and shards, and resumes at any step.

    Args:
        lengths: The length of each sample, in tokens or in whatever is padded.
        edges: Where a new bucket begins, rising: with ``[128, 512]``, samples shorter than 128, those from 128 up to
            511, and all others. A bucket's last samples, if they are too few for a batch, are joined to the next
            bucket's, unless a smaller batch wastes less. None: so that the longest sample of a bucket is some 6 %
            longer than its shortest.
        max_tokens: The most that a batch may hold once it is padded: its size times its longest sample. The sizes of
            batches follow from it, and the loader's ``batch_size`` plays no part. None: batches of ``batch_size``.

    Raises:
        TypeError: Lengths, edges or ``max_tokens`` are not whole numbers.
        ValueError: Lengths are negative, edges do not rise, or a sample is longer than ``max_tokens``. The loader
            raises it if there are not as many lengths as samples.

    Example:
        >>> import numpy as np, stoker
        >>> texts = [np.arange(n) for n in (3, 9, 2, 8, 3, 9)]
        >>> buckets = stoker.Buckets([len(text) for text in texts], max_tokens=20)
        >>> with stoker.Loader(texts, order=buckets, collate=stoker.pad) as loader:
        ...     sorted(batch.shape for batch in loader)
        [(1, 9), (2, 9), (3, 3)]
    """

    __slots__ = ("_edges", "_lengths", "max_tokens")

    def __init__(self, lengths: Any, edges: Any = None, *, max_tokens: int | None = None) -> None:
        self._lengths = _whole_numbers("lengths", lengths)
        self.max_tokens = None if max_tokens is None else _checked_budget(max_tokens, self._lengths)
        self._edges = _chosen_edges(self._lengths, self.max_tokens) if edges is None else _checked_edges(edges)

    def ordering(self, batch_size: int) -> "BucketOrder":
        """The order, for a loader with that batch size."""
        return BucketOrder(self._lengths, self._edges, batch_size, self.max_tokens)

    def __repr__(self) -> str:
        return f"Buckets({len(self._lengths)} lengths, {len(self._edges) + 1} buckets, max_tokens={self.max_tokens})"


class BucketOrder:
    """The order that buckets give; an ``Ordering``, and with ``max_tokens`` a ``BatchOrdering``.

    Samples are sorted by bucket, those of a bucket at random, and cut into batches: so many of a size for each bucket,
    always the same. Then batches are put into an order of the epoch's own.
    """

    deals_batches = True

    __slots__ = ("_buckets", "_digest", "_has_rest", "_lengths", "_name", "_sizes", "holds_batches")

    def __init__(self, lengths: Positions, edges: Positions, batch_size: int, max_tokens: int | None) -> None:
        self._lengths = lengths
        buckets = np.searchsorted(edges, lengths, side="right")
        self._buckets = buckets.astype(np.uint16 if len(edges) < 2**16 else np.int64)  # which are sorted far quicker
        self._sizes, self._has_rest = _batch_sizes(lengths, buckets, len(edges) + 1, batch_size, max_tokens)
        self.holds_batches = max_tokens is not None
        self._digest = digest_of(lengths, edges)
        self._name = f"Buckets({self._digest}, max_tokens={max_tokens}, formula={_FORMULA})"

    def positions(self, length: int, seed: int, epoch: int) -> int:
        """Batches, or samples where all batches have one size."""
        if length != len(self._lengths):
            raise ValueError(
                f"Buckets has {len(self._lengths)} lengths, and the dataset has {length} samples: pass one length for "
                f"each sample"
            )
        return len(self._sizes) if self.holds_batches else length

    def of_epoch(self, length: int, shuffle: bool | int, seed: int, epoch: int) -> BatchedOrder:
        count, sizes = len(self._lengths), self._sizes
        samples, batches = np.arange(count), np.arange(len(sizes))
        if shuffle:
            samples = Shuffled(count, derive(Domain.BUCKET_SAMPLES, seed, epoch)).at(samples)
        samples = samples[np.argsort(self._buckets[samples], kind="stable")]
        starts = np.cumsum(sizes) - sizes
        tokens = np.add.reduceat(self._lengths[samples], starts) if count else sizes
        full = len(sizes) - self._has_rest  # what is left over comes last, as in any epoch
        if shuffle:
            alike = _ALIKE if self.holds_batches else _ALIKE_IN_LENGTH
            batches[:full] = _shuffled_batches(tokens[:full], alike, seed, epoch)
        bounds = np.concatenate(([0], np.cumsum(sizes[batches])))
        moved = np.repeat(starts[batches] - bounds[:-1], sizes[batches]) + np.arange(count)
        # Where batches have one size, one that is smaller is no batch of its own, but a last round's samples.
        return BatchedOrder(samples[moved], bounds, tokens[batches if self.holds_batches else batches[:full]])

    def fingerprint(self, epoch: int | None) -> str:
        return self._name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BucketOrder) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._digest)

    def _key(self) -> tuple[str, bytes]:
        return self._name, self._sizes.tobytes()


def _shuffled_batches(tokens: Positions, alike: int, seed: int, epoch: int) -> Positions:
    """A random order of batches, in which those with like numbers of tokens come together, a few at a time.

    Whichever shards take turns, all get like numbers of tokens then. The few that are left over are any.
    """
    count = len(tokens)
    order = Shuffled(count, derive(Domain.BUCKET_BATCHES, seed, epoch)).at(np.arange(count))
    groups = count // alike
    grouped, rest = order[: groups * alike], order[groups * alike :]
    rank = np.argsort(tokens[grouped], kind="stable")  # of places in the random order, to which each group goes back
    members = np.sort(rank.reshape(groups, alike), axis=1)
    turns = Shuffled(groups, derive(Domain.BUCKET_GROUPS, seed, epoch)).at(np.arange(groups))
    return np.concatenate((grouped[members[turns].reshape(-1)], rest))


def _batch_sizes(
    lengths: Positions, buckets: npt.NDArray[np.intp], count: int, batch_size: int, max_tokens: int | None
) -> tuple[Positions, bool]:
    """Of all batches, bucket after bucket; and whether the last of them is what was left over.

    They are the same in each epoch, so that all epochs have as many batches.
    """
    members = np.bincount(buckets, minlength=count)
    longest = np.ones(count, dtype=np.int64)
    np.maximum.at(longest, buckets, lengths)
    sizes, counts, left, is_rest = [], [], 0, False
    there = np.flatnonzero(members).tolist()
    for bucket, following in zip(there, [*there, None][1:], strict=True):
        most = int(longest[bucket])
        size = batch_size if max_tokens is None else max_tokens // most
        full, left = divmod(int(members[bucket]) + left, size)
        sizes.append(size)
        counts.append(full)
        if left and (following is None or (max_tokens and left * (longest[following] - most) > (size - left) * most)):
            sizes.append(left)  # a smaller batch wastes less than padding these up to the next bucket
            counts.append(1)
            is_rest, left = following is None, 0
    return np.repeat(np.array(sizes, dtype=np.int64), np.array(counts, dtype=np.int64)), is_rest


def _chosen_edges(lengths: Positions, max_tokens: int | None) -> Positions:
    """Rising by a ratio; and wherever fewer samples fit into the budget, if these are few."""
    if not len(lengths):
        return np.zeros(0, dtype=np.int64)
    low, high = max(int(lengths.min()), 1), max(int(lengths.max()), 1)
    steps = int(np.log(high / low) / np.log(_SPREAD)) + 1
    edges = [np.ceil(low * _SPREAD ** np.arange(1, steps + 1)).astype(np.int64)]
    if max_tokens is not None:
        edges.append(max_tokens // np.arange(1, _FEW + 1) + 1)
    return np.unique(np.concatenate(edges))


def _checked_edges(edges: Any) -> Positions:
    found = _whole_numbers("edges", edges)
    if (np.diff(found) <= 0).any():
        raise ValueError(f"Buckets(edges={_short(found)}): pass edges that rise")
    return found


def _checked_budget(max_tokens: Any, lengths: Positions) -> int:
    try:
        budget = -1 if isinstance(max_tokens, BOOLS) else index(max_tokens)
    except TypeError:
        raise TypeError(f"Buckets(max_tokens={max_tokens!r}): pass a whole number, or None") from None
    if budget < 1:
        raise ValueError(f"Buckets(max_tokens={max_tokens!r}): pass 1 or more, or None")
    too_long = np.flatnonzero(lengths > budget)
    if len(too_long):
        first, more = too_long[0], f", and {len(too_long) - 1} others are too long" if len(too_long) > 1 else ""
        raise ValueError(
            f"Buckets: sample {first} has length {lengths[first]}, and max_tokens is {budget}{more}: pass at least "
            f"max_tokens={lengths.max()}, or leave such samples out of the dataset, or truncate them"
        )
    return budget


def _whole_numbers(name: str, values: Any) -> Positions:
    try:
        found = np.asarray(values)
    except ValueError as error:
        raise TypeError(f"Buckets: {name} are not whole numbers in a row: {error}") from error
    if found.ndim != 1:
        raise ValueError(f"Buckets: {name} have the shape {found.shape}: pass whole numbers in a row")
    if not found.size:
        found = found.astype(np.int64)
    if found.dtype.kind not in "iu":
        raise TypeError(f"Buckets: {name} are values of type {found.dtype}: pass whole numbers")
    if found.size and not 0 <= int(found.min()) <= int(found.max()) < 2**62:
        place = int(np.argmin(found) if found.min() < 0 else np.argmax(found))
        raise ValueError(f"Buckets: {name}[{place}] is {found[place]}: pass whole numbers of 0 or more")
    found = found.astype(np.int64)
    found.flags.writeable = False
    return found


def _short(values: Positions) -> str:
    return np.array2string(values, threshold=8, separator=", ")
