"""Columns of strings on their way: bytes, of which Python's strings are made in the consumer, batch by batch.

A batch's strings are freed before the next ones are made, and so take memory that is still in the processor's caches.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from stoker.collation.columns import Pieces, materialize
from stoker.sources.files.ragged import Array


@dataclass(frozen=True, eq=False)
class Texts:
    """Strings as Arrow has them, one behind the other in ``data``: string i is from ``offsets[i]`` to the next one.

    Attributes:
        data: UTF-8, an array of bytes; while it is on its way into a slot, a column that writes one.
        offsets: One more than there are strings.
        nulls: Which strings are missing, if any are. Nothing in ``data`` is theirs.
    """

    data: Any
    offsets: Array
    nulls: Array | None = None

    @staticmethod
    def of(values: list[str]) -> Texts | None:
        """None where a string has half of a pair of surrogates, for which UTF-8 has no bytes."""
        text = "".join(values)
        if text.isascii():
            return Texts(_bytes(text.encode()), _offsets(map(len, values), len(values)))
        try:
            encoded = list(map(str.encode, values))
        except UnicodeEncodeError:
            return None
        return Texts(_bytes(b"".join(encoded)), _offsets(map(len, encoded), len(encoded)))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def part(self, start: int, stop: int) -> Texts:
        """The strings from one to another, over the same memory where there are fewer of them."""
        if start == 0 and stop == len(self):
            return self
        offsets = self.offsets[start : stop + 1]
        nulls = None if self.nulls is None else self.nulls[start:stop]
        return Texts(_array(self.data)[offsets[0] : offsets[-1]], offsets - offsets[0], nulls)

    def take(self, rows: Array) -> Texts:
        data = _array(self.data).data
        bounds = zip(self.offsets[rows].tolist(), self.offsets[rows + 1].tolist(), strict=True)
        taken = b"".join([data[begin:end] for begin, end in bounds])
        offsets = _offsets(np.diff(self.offsets)[rows], len(rows))
        return Texts(_bytes(taken), offsets, None if self.nulls is None else self.nulls[rows])

    def rows(self, start: int = 0, stop: int | None = None) -> list[Any]:
        """The strings from one to another; None where one is missing."""
        offsets = self.offsets[start : None if stop is None else stop + 1]
        first = int(offsets[0])
        data = _array(self.data)[first : offsets[-1]].data
        bounds = itertools.pairwise((offsets - first).tolist())
        text = str(data, "utf-8")
        if len(text) == len(data):  # all is ASCII, so that characters are where their bytes are
            strings: list[Any] = [text[begin:end] for begin, end in bounds]
        else:
            strings = [str(data[begin:end], "utf-8") for begin, end in bounds]
        if self.nulls is None:
            return strings
        nulls = self.nulls[start:stop].tolist()
        return [None if is_null else string for string, is_null in zip(strings, nulls, strict=True)]

    @staticmethod
    def joined(parts: Sequence[Texts]) -> Texts:
        """Several, one behind the other."""
        ends = np.cumsum([0, *[part.offsets[-1] for part in parts]])
        offsets = [part.offsets[:-1] + end for part, end in zip(parts, ends, strict=False)]
        nulls = None
        if any(part.nulls is not None for part in parts):
            nulls = np.concatenate([np.zeros(len(one), bool) if one.nulls is None else one.nulls for one in parts])
        return Texts(_joined([part.data for part in parts]), np.concatenate([*offsets, ends[-1:]]), nulls)


@dataclass(frozen=True, eq=False)
class PackedTexts:
    """Strings in pieces of some rows each, of which MessagePack makes strings in half the time that ``Texts`` takes.

    Attributes:
        data: The pieces, an array of bytes; while it is on its way into a slot, a column that writes one.
        ends: Where in ``data`` each piece ends.
        bounds: The rows at which pieces begin, and the last one ends.
    """

    data: Any
    ends: Array
    bounds: Array

    @staticmethod
    def of(values: list[str], bounds: Sequence[int] = ()) -> PackedTexts | None:
        """In pieces between these bounds. None where a string has half of a pair of surrogates, as above."""
        encode, bounds = msgspec.msgpack.Encoder().encode, bounds or (0, len(values))
        try:
            pieces = [_bytes(encode(values[start:stop])) for start, stop in itertools.pairwise(bounds)]
        except UnicodeEncodeError:
            return None
        return PackedTexts(Pieces(pieces), np.cumsum(list(map(len, pieces))), np.array(bounds))

    def __len__(self) -> int:
        return int(self.bounds[-1])

    def take(self, rows: Array) -> list[Any]:
        laid_out = self._laid_out()
        pieces = np.searchsorted(self.bounds, rows, "right") - 1
        strings = {piece: laid_out.strings(piece) for piece in set(pieces.tolist())}
        within = (rows - self.bounds[pieces]).tolist()
        return [strings[piece][row] for piece, row in zip(pieces.tolist(), within, strict=True)]

    def rows(self, start: int = 0, stop: int | None = None) -> list[Any]:
        """The strings from one to another."""
        return Unpacker(self._laid_out()).rows(start, len(self) if stop is None else stop)

    def _laid_out(self) -> PackedTexts:
        return PackedTexts(_array(self.data), self.ends, self.bounds)

    def strings(self, piece: int) -> list[Any]:
        """Of one piece of an array."""
        begin = self.ends[piece - 1] if piece else 0
        strings: list[Any] = msgspec.msgpack.decode(self.data[begin : self.ends[piece]].data)
        return strings

    @staticmethod
    def joined(parts: Sequence[PackedTexts]) -> PackedTexts:
        """Several, one behind the other."""
        ends = np.cumsum([0, *[part.ends[-1] for part in parts]])
        rows = np.cumsum([0, *map(len, parts)])
        bounds = [part.bounds[1:] + row for part, row in zip(parts, rows, strict=False)]
        return PackedTexts(
            _joined([part.data for part in parts]),
            np.concatenate([part.ends + end for part, end in zip(parts, ends, strict=False)]),
            np.concatenate([rows[:1], *bounds]),
        )


class Unpacker:
    """Makes the strings of ``PackedTexts`` batch by batch. A piece that is not used up stays at hand."""

    def __init__(self, texts: PackedTexts) -> None:
        self._texts, self._bounds = texts, texts.bounds.tolist()
        self._piece, self._strings = -1, list[Any]()

    def rows(self, start: int, stop: int) -> list[Any]:
        """The strings from one to another."""
        found: list[Any] = []
        while start < stop:
            piece = bisect_right(self._bounds, start) - 1
            if piece != self._piece:
                self._strings, self._piece = self._texts.strings(piece), piece
            before = self._bounds[piece]
            found += self._strings[start - before : stop - before]
            start = self._bounds[piece + 1]
        return found


def _array(data: Array | Pieces) -> Array:
    return materialize(data) if isinstance(data, Pieces) else data


def _joined(datas: Iterable[Array | Pieces]) -> Pieces:
    return Pieces([piece for data in datas for piece in (data.arrays if isinstance(data, Pieces) else [data])])


def _bytes(data: bytes) -> Array:
    return np.frombuffer(data, np.uint8)


def _offsets(lengths: Iterable[int], count: int) -> Array:
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(np.fromiter(lengths, np.int64, count), out=offsets[1:])
    return offsets
