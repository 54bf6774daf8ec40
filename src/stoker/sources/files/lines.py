"""Text, a sample a line: JSON lines and plain text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

import msgspec

from stoker.sources.files.opening import open_file
from stoker.sources.files.place import Place

_BLOCK_BYTES = 1 << 22  # of lines that are counted
_BLANK = b" \t\r\n"  # what JSON takes for nothing


def read_json(path: str, place: Place) -> list[Any]:
    """An object a line; blank lines are none."""
    decode = msgspec.json.Decoder().decode
    samples: list[Any] = []
    number = byte = 0
    try:
        with open_file(path) as file:
            for line in file:
                number += 1
                if line.strip(_BLANK):
                    samples.append(decode(line))
                byte += len(line)
    except Exception as error:
        place.where = f"line {number:,}, byte {byte:,}" if number else ""
        if isinstance(error, msgspec.DecodeError | UnicodeDecodeError):
            error.add_note("A file of JSON holds one value a line; for any other give read=function")
        raise
    return samples


def count_json(path: str, place: Place) -> int:
    """How many lines are not blank."""
    with open_file(path) as file:
        return sum(sum(1 for line in block.split(b"\n") if line.strip(_BLANK)) for block in _blocks(file))


def read_text(path: str, place: Place) -> list[str]:
    """Each line without its end, in UTF-8."""
    with open_file(path) as file:
        data = file.read()
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        place.where = f"line {number:,}, byte {error.start:,}"
        raise
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines] if "\r" in text else lines


def count_text(path: str, place: Place) -> int:
    """How many lines there are, blank or not."""
    count, last = 0, b"\n"
    with open_file(path) as file:
        while block := file.read(_BLOCK_BYTES):
            count += block.count(b"\n")
            last = block[-1:]
    return count + (last != b"\n")


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    """Big pieces of the file, of whole lines."""
    while block := file.read(_BLOCK_BYTES):
        yield block if block.endswith(b"\n") else block + file.readline()
