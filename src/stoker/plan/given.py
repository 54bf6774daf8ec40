"""Indices in the order in which the user has put them."""

from hashlib import blake2b
from operator import index
from typing import Any

import numpy as np

from stoker.plan.order import Listed, Order, plain_order
from stoker.plan.permutation import Positions

_DIGEST_BYTES = 8


class Given:
    """These indices, once an epoch, in this order or shuffled. An index may be there several times, or not at all.

    Args:
        indices: An array of integers, or what numpy makes one of.
        name: What the user knows them as, for messages.

    Raises:
        TypeError: They are not integers.
        ValueError: They are negative, or not in a row.
    """

    __slots__ = ("_digest", "_indices", "_most", "_name")

    def __init__(self, indices: Any, *, name: str = "order") -> None:
        self._name = name
        self._indices = checked_indices(indices, name)
        self._most = int(self._indices.max(initial=-1))
        self._digest = digest_of(self._indices)

    def positions(self, length: int, seed: int, epoch: int) -> int:
        if self._most >= length:
            place = int(np.argmax(self._indices))
            raise ValueError(
                f"{self._name}[{place}] is {self._most}, and the dataset has {length} samples: "
                f"pass indices from 0 to {length - 1}"
            )
        return len(self._indices)

    def of_epoch(self, length: int, shuffle: bool | int, seed: int, epoch: int) -> Order:
        count = self.positions(length, seed, epoch)
        return Listed(self._indices, plain_order(count, shuffle, seed, epoch))

    def fingerprint(self, epoch: int | None) -> str:
        return f"{len(self._indices)} indices ({self._digest})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Given) and self._digest == other._digest

    def __hash__(self) -> int:
        return hash(self._digest)


def digest_of(*arrays: np.ndarray[Any, Any]) -> str:
    """A short text that only arrays with these very values have."""
    digest = blake2b(digest_size=_DIGEST_BYTES)
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    return digest.hexdigest()


def checked_indices(indices: Any, name: str) -> Positions:
    """As an array of our own, which nobody writes into."""
    found = _as_array(indices, name)
    if found.ndim != 1:
        raise ValueError(f"{name} has the shape {found.shape}: pass indices in a row, one for each sample")
    if not found.size:
        found = found.astype(np.int64)
    if found.dtype.kind == "b":
        raise TypeError(f"{name} holds True and False: pass numpy.flatnonzero(mask) for the samples where it is True")
    if found.dtype.kind not in "iu":
        raise TypeError(f"{name} holds {_kind(found)}: pass integers, from 0 to the number of samples - 1")
    if found.dtype.kind == "i" and found.size and found.min() < 0:
        place = int(np.argmin(found))
        raise ValueError(
            f"{name}[{place}] is {found[place]}: pass indices from 0 on, negative ones are not counted back"
        )
    if found.dtype.kind == "u" and found.size and found.max() >= 2**63:
        raise ValueError(f"{name} holds {found.max()}: no dataset has so many samples")
    found = found.astype(np.int64)
    found.flags.writeable = False
    return found


def _as_array(indices: Any, name: str) -> np.ndarray[Any, Any]:
    try:
        found = np.asarray(indices)
        if found.dtype == object and found.ndim == 1:  # such as 0-d tensors, of which samplers are made
            found = np.array([index(one) for one in found.tolist()])
    except (TypeError, ValueError, OverflowError) as error:
        raise TypeError(
            f"{name} does not hold integers in a row ({error}): pass indices, one for each sample"
        ) from error
    return found


def _kind(array: np.ndarray[Any, Any]) -> str:
    return "text" if array.dtype.kind in "US" else f"values of type {array.dtype}"
