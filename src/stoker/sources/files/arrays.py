"""Arrays of numpy: ``.npy``, whose rows are the samples, and ``.npz``, whose arrays are columns."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from typing import IO

import numpy as np

from stoker.sources.files.columns import Array, Columns
from stoker.sources.files.opening import ending, open_file, open_pieces
from stoker.sources.files.place import Place

_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
_ZIP_END_BYTES = 22  # of the record that ends an archive, without a comment


def read_npy(path: str, place: Place) -> Columns:
    """The rows of one array."""
    with open_file(path) as file:
        array = parse_npy(file)
        if file.read(1):
            raise ValueError(f"there is more behind the array of shape {array.shape}: a .npy file holds one array")
    return Columns({None: array})


def read_npz(path: str, place: Place) -> Columns:
    """A column for each array."""
    with open_file(path) as file, _archive(io.BytesIO(file.read())) as archive:
        return Columns({name: parse_npy(io.BytesIO(archive.read(at))) for name, at in _members(archive, place)})


def count_npy(path: str, place: Place) -> int:
    """The number of rows, by the header."""
    with open_pieces(path) as file:
        return _rows(file)


def count_npz(path: str, place: Place) -> int:
    """The number of rows, by the headers."""
    counts: dict[str, int] = {}
    with open_pieces(path) as file, _archive(io.BytesIO(file.read()) if ending(path)[1] else file) as archive:
        for name, at in _members(archive, place):
            with archive.open(at) as member:
                counts[name] = _rows(member)
    place.where = ""
    return len(Columns({name: np.broadcast_to(np.int8(0), count) for name, count in counts.items()}))


def parse_npy(file: IO[bytes]) -> Array:
    """The array; one that would have to be unpickled is an error."""
    array: Array = np.lib.format.read_array(file, allow_pickle=False)
    return array


def _rows(file: IO[bytes]) -> int:
    header = _HEADERS.get(np.lib.format.read_magic(file))
    if header is None:  # 3.0, of names that are not Latin: numpy has no function for its header alone
        file.seek(0)
        return len(Columns({None: parse_npy(file)}))
    shape, _, dtype = header(file)
    if dtype.hasobject or not shape:
        raise ValueError(f"an array of shape {shape} and dtype {dtype} has no rows that can be read without pickle")
    return shape[0]


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


def _members(archive: zipfile.ZipFile, place: Place) -> Iterator[tuple[str, zipfile.ZipInfo]]:
    for info in archive.infolist():
        place.where = f"array {info.filename!r}, byte {info.header_offset:,}"
        yield info.filename.removesuffix(".npy"), info
    place.where = ""
