"""What a cache's folder holds, as somebody sees it who does not know the dataset: for ``stoker cache``.

All is read with ``pread`` and compared with its checksum. Nothing is mapped, so a file that is cut short meanwhile is
no crash; nothing is decoded, so no sample can do anything.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from stoker.errors import CacheError
from stoker.stores.cache_folder import (
    ABOUT,
    ENDING,
    IN_USE,
    LOCK,
    About,
    generation_files,
    holding,
    nbytes,
    read_about,
    unfinished,
)
from stoker.stores.cache_layout import ENTRY, HEADER_BYTES, check_of, read_header
from stoker.stores.claims import CLAIMED, EMPTY, READY
from stoker.stores.locks import Locks

_PIECE = 2**22  # bytes that are read at once
_ENTRIES = 2**16  # of the table, that are held at once


class NoCache(CacheError):
    """There is no cache, or none that can be read."""


class InUse(CacheError):
    """It cannot be removed, since somebody reads it."""


@dataclass(frozen=True)
class GenerationInfo:
    """One generation. ``count`` and ``kept`` are None where its header is damaged."""

    path: str
    nbytes: int
    written: float  # when, in seconds since 1970
    in_use: bool
    count: int | None
    kept: int | None

    @property
    def name(self) -> str:
        return Path(self.path).name.removesuffix(ENDING)


@dataclass
class Findings:
    """What became of the samples of a generation."""

    sound: int = 0
    missing: int = 0
    damaged: list[int] = field(default_factory=list)
    header_damaged: bool = False

    @property
    def is_damaged(self) -> bool:
        return self.header_damaged or bool(self.damaged)


def about(path: str) -> About:
    """Whose cache it is.

    Raises:
        NoCache: It is none, or its ``about.json`` is damaged.
    """
    try:
        found = read_about(path, anybodys=True)
    except OSError as error:
        raise NoCache(f"cannot read {path}: {error.strerror}") from error
    except CacheError as error:
        raise NoCache(str(error)) from error
    if found is None:
        what = "has no about.json" if os.path.isdir(path) else "is a file" if os.path.exists(path) else "is not there"
        raise NoCache(f"{path} is no cache of Stoker's: it {what}")
    return found


def list_generations(path: str) -> list[GenerationInfo]:
    """The generations of a cache, oldest first."""
    found = []
    for file in generation_files(path):
        with _opened(str(file)) as fd:
            if fd is not None:
                status, count, kept = os.fstat(fd), _count(fd), None
                if count is not None:
                    kept = sum(int((entries["state"] == READY).sum()) for _, entries in _table(fd, count))
                in_use = Locks(fd).is_held(IN_USE)
                found.append(GenerationInfo(str(file), status.st_size, status.st_mtime, in_use, count, kept))
    return found


def verify(path: str, progress: Callable[[int], None]) -> Findings:
    """Checks every sample of a generation; calls ``progress`` with the bytes that were read since the last call."""
    findings = Findings()
    with _opened(path) as fd:
        count = None if fd is None else _count(fd)
        if fd is None or count is None:
            findings.header_damaged = fd is not None
            return findings
        for first, entries in _table(fd, count):
            for index, entry in enumerate(entries, first):
                _verify_sample(fd, index, entry, findings, progress)
    findings.missing = count - findings.sound - len(findings.damaged)  # if it was cut short, also those behind its end
    return findings


def remove(path: str, *, force: bool) -> tuple[int, list[str]]:
    """Removes a cache's files, and its folder if nothing else is in it. The bytes they had, and what else is there.

    Raises:
        NoCache: It is none.
        InUse: Somebody has a generation open. ``force``: he keeps what he has open, and makes the rest uncached.
    """
    _check_removable(path)
    _remove_links(path)
    with holding(path, anybodys=True):
        files = [str(file) for file in generation_files(path)]
        used = [file for file in files if _is_in_use(file)]
        if used and not force:
            raise InUse(f"{path} is in use: end the programs that read it, or pass --force")
        # Last those that tell whose it is.
        files += [os.path.join(path, name) for name in (*unfinished(os.listdir(path)), ABOUT, LOCK)]
        freed = sum(map(nbytes, files))
        for file in files:
            Path(file).unlink(missing_ok=True)
    others = sorted(os.listdir(path))
    if not others:
        with suppress(OSError):  # a link to the folder, or one that somebody is in
            os.rmdir(path)
    return freed, others


def _check_removable(path: str) -> None:
    """A cache whose ``about.json`` is damaged is still one, if all else looks like it."""
    try:
        about(path)
    except NoCache:
        names = set(os.listdir(path)) if os.path.isdir(path) else set()
        if not {ABOUT, LOCK} <= names or any(not name.endswith(ENDING) for name in names - {ABOUT, LOCK}):
            raise


def _remove_links(path: str) -> None:
    """What somebody has put in the place of our files: the links themselves, not what they lead to."""
    for name in os.listdir(path):
        file = os.path.join(path, name)
        if name in (ABOUT, LOCK) or name.endswith(ENDING):
            found = os.lstat(file)
            if not stat.S_ISDIR(found.st_mode) and (not stat.S_ISREG(found.st_mode) or found.st_nlink > 1):
                os.unlink(file)


def _is_in_use(file: str) -> bool:
    with _opened(file) as fd:
        return fd is not None and Locks(fd).is_held(IN_USE)


@contextmanager
def _opened(path: str) -> Iterator[int | None]:
    """To be read; None if it is gone, or no file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        yield None
        return
    try:
        yield fd
    finally:
        os.close(fd)


def _count(fd: int) -> int | None:
    """Samples of the dataset; None if the header is damaged, 0 if whoever made the file was killed too soon."""
    header = read_header(fd)
    if header is None:
        return None if any(os.pread(fd, _PIECE, 0)) else 0
    return int(header["count"])


def _table(fd: int, count: int) -> Iterator[tuple[int, Any]]:
    """The table by parts, each with the index of its first sample, up to where the file ends."""
    for first in range(0, count, _ENTRIES):
        size = min(_ENTRIES, count - first) * ENTRY.itemsize
        told = b"".join(_pieces(fd, HEADER_BYTES + first * ENTRY.itemsize, size))
        yield first, np.frombuffer(told, ENTRY, len(told) // ENTRY.itemsize)
        if len(told) < size:
            return


def _pieces(fd: int, start: int, size: int) -> Iterator[bytes]:
    """The bytes from there on; fewer if the file ends."""
    while size > 0 and (piece := os.pread(fd, min(size, _PIECE), start)):
        yield piece
        start, size = start + len(piece), size - len(piece)


def _verify_sample(fd: int, index: int, entry: Any, findings: Findings, progress: Callable[[int], None]) -> None:
    if entry["state"] == READY and _is_sound(fd, index, entry, progress):
        findings.sound += 1
    elif entry["state"] not in (EMPTY, CLAIMED):
        findings.damaged.append(index)


def _is_sound(fd: int, index: int, entry: Any, progress: Callable[[int], None]) -> bool:
    location = int(entry["offset"]), int(entry["nbytes"]), int(entry["form"]), int(entry["aside"])
    start, size = location[:2]
    if not size or start + size > os.fstat(fd).st_size:
        return False
    digest = xxhash.xxh3_64()
    for piece in _pieces(fd, start, size):
        digest.update(piece)
        progress(len(piece))
    return bool(check_of(digest.intdigest(), index, location) == entry["check"])
