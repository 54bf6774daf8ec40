"""Samples of a WebDataset: members of a tar, one after the other, with the same name up to the first dot.

Members are copied byte for byte, with the blocks before them that hold long names and the like.
"""

from __future__ import annotations

import itertools
import posixpath
import re
import tarfile
from collections.abc import Iterator
from typing import NamedTuple

from stoker.splitting.content import BufferedContent
from stoker.splitting.cutter import RecordCutter, SourceRecord
from stoker.splitting.limit import Limit

_BLOCK = tarfile.BLOCKSIZE
_END = bytes(2 * _BLOCK)
_BYTES_AT_ONCE = 1 << 20
_LONG_NAME = tarfile.GNUTYPE_LONGNAME
_ABOUT_THE_NEXT = (tarfile.XHDTYPE, tarfile.XGLTYPE, _LONG_NAME, tarfile.GNUTYPE_LONGLINK)
_WITHOUT_DATA = (
    *(tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.DIRTYPE),
    *(tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE),
)
_PAX = re.compile(rb"(\d{1,9}) ([^=]+)=")  # and the value; it begins with the length of all of it


class _Member(NamedTuple):
    key: str
    data: bytes
    is_file: bool


def tar_cutter(stream: BufferedContent, limit: Limit, offset: int) -> RecordCutter:
    stream.go_to(offset)
    return RecordCutter(stream, _samples(stream), limit, tail=_END)


def _samples(stream: BufferedContent) -> Iterator[SourceRecord]:
    for _, members in itertools.groupby(_members(stream), key=lambda member: member.key):
        sample = list(members)
        yield SourceRecord(b"".join(member.data for member in sample), int(any(member.is_file for member in sample)))


def _members(stream: BufferedContent) -> Iterator[_Member]:
    while True:
        parts, told = list[bytes](), dict[bytes, bytes]()
        while True:
            block = stream.read(_BLOCK)
            if not parts and (not block or not any(block)):
                return _check_the_end(stream)
            info = _header(stream, block)
            is_about = info.type in _ABOUT_THE_NEXT
            if not is_about:
                info.size = _size(info, told)
            data = stream.exactly(-(-info.size // _BLOCK) * _BLOCK)
            parts += (block, data)
            if not is_about:
                break
            told |= _told(stream, info, data[: info.size])
        name = told[b"path"].decode("utf-8", "surrogateescape") if b"path" in told else info.name
        yield _Member(_key(name), b"".join(parts), info.isreg())


def _header(stream: BufferedContent, block: bytes) -> tarfile.TarInfo:
    try:
        info = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except tarfile.HeaderError as error:
        raise stream.broken(f"no header of a tar's member: {error}") from error
    if info.type == tarfile.GNUTYPE_SPARSE:
        raise stream.broken(f"{info.name} is stored as a sparse file, which split cannot copy")
    return info


def _size(info: tarfile.TarInfo, told: dict[bytes, bytes]) -> int:
    return 0 if info.type in _WITHOUT_DATA else int(told.get(b"size", info.size))


def _told(stream: BufferedContent, info: tarfile.TarInfo, data: bytes) -> dict[bytes, bytes]:
    """What a member that is no file says of the next one: its path and size, where they do not fit its header."""
    if info.type == _LONG_NAME:
        return {b"path": data.rstrip(b"\0")}
    told = dict[bytes, bytes]()
    while info.type == tarfile.XHDTYPE and data.strip(b"\0"):
        found = _PAX.match(data)
        if found is None or not found.end() < int(found[1]) <= len(data):
            raise stream.broken("the extended header of a tar's member is damaged")
        length = int(found[1])
        told[found[2]], data = data[found.end() : length - 1], data[length:]
    if not told.get(b"size", b"0").isdigit():
        raise stream.broken("the extended header of a tar's member tells no size")
    return told


def _key(name: str) -> str:
    folder, base = posixpath.split(name)
    return f"{folder}/{base.partition('.')[0]}"


def _check_the_end(stream: BufferedContent) -> None:
    while rest := stream.read(_BYTES_AT_ONCE):
        if any(rest):
            raise stream.broken("there is more behind the end of the tar: tars that were joined? Split each by itself")
