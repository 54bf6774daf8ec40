"""Where a chunk ends: before the record that would make it larger than the limit."""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass
from fractions import Fraction

from stoker.counts import BOOLS

_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)(b?)\s*", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True)
class Limit:
    """The most bytes or the most records of a chunk; a single record may be longer than ``size``."""

    size: int | None = None
    count: int | None = None

    def admits(self, nbytes: int, records: int) -> bool:
        """Whether a chunk may be so large."""
        return nbytes <= self.size if self.size is not None else records <= (self.count or 0)


def limit_of(size: int | str | None, count: int | None) -> Limit:
    """
    Raises:
        ValueError, TypeError: Neither or both are given, or what is given is no size or no count.
    """
    if (size is None) == (count is None):
        given = "neither" if size is None else "both"
        raise ValueError(f'split needs either size="64MB" or count=10_000, and {given} of them was given')
    if size is not None:
        return Limit(size=_positive("size", nbytes(size) if isinstance(size, str) else size))
    return Limit(count=_positive("count", count))


def nbytes(text: str) -> int:
    """Bytes of a size as it is written.

    >>> nbytes("64MB"), nbytes("1.5 GiB"), nbytes("500k")
    (64000000, 1610612736, 500000)
    """
    match = _SIZE.fullmatch(text)
    if match is None or (match[3] and not match[2]):
        raise ValueError(f'size={text!r} is no size: pass bytes, or a number and a unit, like "64MB" or "1.5 GiB"')
    base = 1024 if match[3] else 1000
    return int(Fraction(match[1]) * base ** _POWERS[match[2].lower()])


def _positive(name: str, value: object) -> int:
    if isinstance(value, BOOLS) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be a whole number, and {value!r} is a {type(value).__name__}")
    number = operator.index(value)
    if number < 1:
        raise ValueError(f"{name}={number}: a chunk holds at least 1")
    return number
