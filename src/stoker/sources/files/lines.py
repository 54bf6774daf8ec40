"""Text, a sample a line: JSON lines and plain text."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator, Sized
from contextlib import suppress
from typing import Any, BinaryIO, NamedTuple, TypeVar

import msgspec
import numpy as np

from stoker.sources.files.columns import Pack, Samples
from stoker.sources.files.json_records import JsonRecordDecoder
from stoker.sources.files.opening import open_file
from stoker.sources.files.parts import Part
from stoker.sources.files.ranges import read_lines
from stoker.sources.files.read_context import ReadContext

S = TypeVar("S", bound=Sized)

_BLOCK_BYTES = 1 << 17  # of lines that are read or counted together; more do not fit a cache of the processor
_NEWLINE = ord("\n")
_BLANK = b" \t\r\n"  # what JSON takes for nothing
_WORDS = re.compile(rb"[A-Za-z]+")
_NOT_FINITE = frozenset((b"NaN", b"Infinity"))


def read_json(path: str, context: ReadContext) -> Iterator[list[Any]]:
    """An object a line, piece by piece; blank lines are none."""
    with open_file(path) as file:
        yield from _pieces(file, context, 0, msgspec.json.Decoder().decode_lines)


def read_json_part(part: Part, context: ReadContext) -> Iterator[list[Any]]:
    """The same, of the lines that begin in a part."""
    data, begin = _lines_of(part)
    yield from _pieces(io.BytesIO(data), context, begin, msgspec.json.Decoder().decode_lines)


def gather_json(path: str, context: ReadContext, *, pack: Pack | None) -> Iterator[Samples]:
    """As ``read_json``, but columns where they make such. ``pack``: does that with strings."""
    with open_file(path) as file:
        yield from _pieces(file, context, 0, JsonRecordDecoder(pack=pack).decode)


def gather_json_part(part: Part, context: ReadContext, *, pack: Pack | None) -> Iterator[Samples]:
    """The same, of the lines that begin in a part."""
    data, begin = _lines_of(part)
    yield from _pieces(io.BytesIO(data), context, begin, JsonRecordDecoder(pack=pack).decode)


def _pieces(file: BinaryIO, context: ReadContext, begin: int, decode: Callable[[bytes], S]) -> Iterator[S | list[Any]]:
    """``begin``: the byte of the file that is read first here."""
    decoder = msgspec.json.Decoder()
    at = _At(begin)
    for block in _blocks(file):
        count = _newlines(block) + (not block.endswith(b"\n"))
        values: S | list[Any] = []
        with suppress(Exception):
            values = decode(block)
        if len(values) != count:  # some line is wrong, holds two values or is blank: which one?
            values = _line_by_line(decoder, block, at, context)
        yield values
        at = at.behind(count, len(block))
        context.where = str(at)
    context.where = ""


def _line_by_line(decoder: msgspec.json.Decoder[Any], block: bytes, at: _At, context: ReadContext) -> list[Any]:
    """The same, more slowly. ``at``: where the block begins."""
    values = []
    for line in io.BytesIO(block):
        try:
            if line.strip(_BLANK):
                values.append(_decoded(decoder, line))
        except Exception as error:
            context.where = str(at.behind(1, 0))
            error.add_note("A file of JSON holds one value a line; for any other give read=function")
            raise
        at = at.behind(1, len(line))
    return values


def _decoded(decoder: msgspec.json.Decoder[Any], line: bytes) -> Any:
    """Python's json and others write numbers that JSON has no word for; Python's json reads them, too."""
    try:
        return decoder.decode(line)
    except msgspec.DecodeError:
        if _NOT_FINITE.isdisjoint(_WORDS.findall(line)):
            raise
        with suppress(ValueError, RecursionError):
            return json.loads(line)
        raise


class _At(NamedTuple):
    """A position in a file: its byte, and how many lines are before it, if its beginning was read."""

    begin: int
    lines: int = 0
    nbytes: int = 0

    def behind(self, lines: int, nbytes: int) -> _At:
        return self._replace(lines=self.lines + lines, nbytes=self.nbytes + nbytes)

    def __str__(self) -> str:
        byte = f"byte {self.begin + self.nbytes:,}"
        return byte if self.begin else f"line {self.lines:,}, {byte}"


def count_json(path: str, context: ReadContext) -> int:
    """How many lines are not blank."""
    with open_file(path) as file:
        return _filled(file)


def count_json_part(part: Part, context: ReadContext) -> int:
    """The same, of the lines that begin in a part."""
    return _filled(io.BytesIO(_lines_of(part)[0]))


def _filled(file: BinaryIO) -> int:
    return sum(sum(1 for line in block.split(b"\n") if line.strip(_BLANK)) for block in _blocks(file))


def read_text(path: str, context: ReadContext) -> list[str]:
    """Each line without its end, in UTF-8."""
    with open_file(path) as file:
        return _texts(file.read(), context, 0)


def read_text_part(part: Part, context: ReadContext) -> list[str]:
    """The same, of the lines that begin in a part."""
    data, begin = _lines_of(part)
    return _texts(data, context, begin)


def _texts(data: bytes, context: ReadContext, begin: int) -> list[str]:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        context.where = str(_At(begin, data.count(b"\n", 0, error.start) + 1, error.start))
        raise
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines] if "\r" in text else lines


def count_text(path: str, context: ReadContext) -> int:
    """How many lines there are, blank or not."""
    count, last = 0, b"\n"
    with open_file(path) as file:
        while block := file.read(_BLOCK_BYTES):
            count += _newlines(block)
            last = block[-1:]
    return count + (last != b"\n")


def count_text_part(part: Part, context: ReadContext) -> int:
    """The same, of the lines that begin in a part."""
    data, _ = _lines_of(part)
    return _newlines(data) + (not data.endswith(b"\n") and data != b"")


def _lines_of(part: Part) -> tuple[bytes, int]:
    assert part.end is not None
    return read_lines(part.path, part.begin, part.end, part.size)


def _newlines(block: bytes) -> int:
    """As ``bytes.count``, twice as quickly."""
    return int(np.count_nonzero(np.frombuffer(block, np.uint8) == _NEWLINE))


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    """Big pieces of the file, of whole lines."""
    while block := file.read(_BLOCK_BYTES):
        yield block if block.endswith(b"\n") else block + file.readline()
