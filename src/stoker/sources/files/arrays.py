"""Arrays of numpy: ``.npy``, whose rows are the samples, and ``.npz``, whose arrays are columns."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Callable, Iterator
from typing import IO, Any, NamedTuple, TypeVar

import numpy as np

from stoker.sources.files.columns import Columns
from stoker.sources.files.opening import ending, open_file, open_pieces
from stoker.sources.files.parts import CannotCut, Cut, Limits, Part, cut_rows
from stoker.sources.files.ragged import Array
from stoker.sources.files.ranges import read_range
from stoker.sources.files.read_context import ReadContext

_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
_HEADER_BYTES = 1 << 16  # that are read at once; a header is seldom longer than 128
_ZIP_END_BYTES = 22  # of the record that ends an archive, without a comment
_PARSES = 10  # of a header: that other threads disturb so many in a row is not to be expected

Read = TypeVar("Read")


def read_npy(path: str, context: ReadContext) -> Columns:
    """The rows of one array."""
    with open_file(path) as file:
        array = parse_npy(file)
        if file.read(1):
            raise ValueError(f"there is more behind the array of shape {array.shape}: a .npy file holds one array")
    return Columns({None: array})


def read_npz(path: str, context: ReadContext) -> Columns:
    """A column for each array."""
    with open_file(path) as file, _archive(io.BytesIO(file.read())) as archive:
        return Columns({name: parse_npy(io.BytesIO(archive.read(at))) for name, at in _members(archive, context)})


def count_npy(path: str, context: ReadContext) -> int:
    """The number of rows, by the header."""
    with open_pieces(path) as file:
        return _rows(file)


def count_npz(path: str, context: ReadContext) -> int:
    """The number of rows, by the headers."""
    counts: dict[str, int] = {}
    with open_pieces(path) as file, _archive(io.BytesIO(file.read()) if ending(path)[1] else file) as archive:
        for name, at in _members(archive, context):
            with archive.open(at) as member:
                counts[name] = _rows(member)
    context.where = ""
    return len(Columns({name: np.broadcast_to(np.int8(0), count) for name, count in counts.items()}))


def parse_npy(file: IO[bytes]) -> Array:
    """The array; one that would have to be unpickled is an error."""

    def read(file: IO[bytes]) -> Array:
        array: Array = np.lib.format.read_array(file, allow_pickle=False)
        return array

    return parsed(read, file)


def parsed(read: Callable[[IO[bytes]], Read], file: IO[bytes]) -> Read:
    """What ``read(file)`` gives, where numpy reads a header.

    It parses the header with Python's own parser, which in releases of 3.11 raises a ``SystemError`` for sound text if
    the garbage collector comes meanwhile and lets another thread parse something. Then it is read again.
    """
    begin = file.tell()
    for _ in range(_PARSES - 1):
        try:
            return read(file)
        except SystemError:
            file.seek(begin)
    return read(file)


class _Header(NamedTuple):
    """What a file says of its array, and where that begins."""

    shape: tuple[int, ...]
    by_columns: bool
    dtype: np.dtype[Any]
    begin: int

    @property
    def row_bytes(self) -> int:
        return math.prod(self.shape[1:]) * self.dtype.itemsize


def read_npy_rows(part: Part, context: ReadContext) -> Columns:
    """The rows of a part."""
    header = _header(io.BytesIO(read_range(part.path, 0, min(_HEADER_BYTES, part.size))))
    if header is None or not part.end:
        raise ValueError("its header tells of another array than when the epoch was planned")
    begin, end = (header.begin + row * header.row_bytes for row in (part.begin, part.end))
    data = bytearray(read_range(part.path, begin, end))
    if len(data) < end - begin:
        raise EOFError(f"it ends at byte {begin + len(data):,}, where it had {part.size:,} when it was listed")
    return Columns({None: np.frombuffer(data, header.dtype).reshape(part.end - part.begin, *header.shape[1:])})


def cut_npy(path: str, size: int, limits: Limits, multiple: int) -> Cut:
    """Rows, where they lie one behind the other. ``multiple``: as in ``cut_rows``."""
    header = _header(io.BytesIO(read_range(path, 0, min(_HEADER_BYTES, size))))
    if header is None or (header.by_columns and len(header.shape) > 1):
        raise CannotCut("its array does not lie row by row")
    there = size - header.begin
    if there != header.shape[0] * header.row_bytes:
        told = f"{header.shape[0] * header.row_bytes:,} bytes of an array of shape {header.shape}"
        raise ValueError(f"it has {there:,} bytes behind its header, which tells of {told}")
    return cut_rows(header.shape[0], header.row_bytes, limits, multiple)


def _rows(file: IO[bytes]) -> int:
    header = _header(file)
    if header is not None:
        return header.shape[0]
    file.seek(0)
    return len(Columns({None: parse_npy(file)}))


def _header(file: IO[bytes]) -> _Header | None:
    """None of format 3.0, for names that are not Latin: numpy has no function for its header alone."""
    read = _HEADERS.get(np.lib.format.read_magic(file))
    if read is None:
        return None
    shape, by_columns, dtype = parsed(read, file)
    if dtype.hasobject or not shape:
        raise ValueError(f"an array of shape {shape} and dtype {dtype} has no rows that can be read without pickle")
    return _Header(shape, by_columns, dtype, file.tell())


def _archive(file: IO[bytes]) -> zipfile.ZipFile:
    archive = zipfile.ZipFile(file)
    _check_count(file, archive)
    return archive


def _check_count(file: IO[bytes], archive: zipfile.ZipFile) -> None:
    """Whether all arrays are there: where its directory is damaged, zipfile may find fewer and not say so."""
    file.seek(-_ZIP_END_BYTES - len(archive.comment), io.SEEK_END)
    told = int.from_bytes(file.read(_ZIP_END_BYTES)[10:12], "little")
    found = len(archive.infolist())
    if told != found & 0xFFFF:
        raise ValueError(f"it has {found:,} arrays, where the end of the file says {told:,}")


def _members(archive: zipfile.ZipFile, context: ReadContext) -> Iterator[tuple[str, zipfile.ZipInfo]]:
    for info in archive.infolist():
        context.where = f"array {info.filename!r}, byte {info.header_offset:,}"
        yield info.filename.removesuffix(".npy"), info
    context.where = ""
