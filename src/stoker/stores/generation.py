"""One generation of a cache: a file that all workers and consumers of a machine map, and append to.

    | header | table: one entry a sample | sample | sample | ...

A sample is written behind all others, then its entry. Whoever is killed in between leaves a gap that nobody reads. An
entry's checksum is over the sample, its place and its index, so it also finds an entry that is damaged itself.
"""

from __future__ import annotations

import contextlib
import errno
import os
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import xxhash

from stoker.errors import CacheError
from stoker.memory import Mapping, Sharing
from stoker.stores.locks import Locks
from stoker.stores.samples import Found, Record, SampleReader, SampleWriter
from stoker.stores.shelf import Claims

MAGIC = b"stoker 1"
HEADER_BYTES = 4096
_ALIGN = 64
_EMPTY, _CLAIMED, _READY = range(3)
_IN_USE, _MUTEX, _OWNERS = 0, 1, 16  # bytes that are locked: by all who have it open; by who changes it; by owners
_FLUSH_BYTES = 2**18  # small samples are written together
_MOST_PIECES = 1024  # that one call can write
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

HEADER = np.dtype(
    [("magic", "S8"), ("count", "<u8"), ("start", "<u8"), ("tail", "<u8"), ("owners", "<u4"), ("published", "<u4")]
)
ENTRY = np.dtype(
    [
        ("state", "<u4"),
        ("owner", "<u4"),
        ("offset", "<u8"),
        ("nbytes", "<u8"),
        ("form", "<u4"),
        ("aside", "<u4"),
        ("check", "<u8"),
    ]
)
_PLACE = struct.Struct("<5Q")


class Generation:
    """A generation as one worker has it open. Made in a folder that nobody else changes meanwhile.

    Args:
        path: The file; made if it is not there.
        count: Samples of the dataset.
        writer: Makes records of samples.
        reader: Makes samples of records.
        room: Tells how many bytes the file may have.
        tell: Called with what the user should know.

    Raises:
        CacheError: The file is of another dataset, or no cache at all.
        OSError: No room for the table.
    """

    def __init__(
        self,
        path: str,
        count: int,
        writer: SampleWriter,
        reader: SampleReader,
        room: Callable[[], float],
        tell: Callable[[str], None],
    ) -> None:
        self._path, self._writer, self._reader, self._room, self._tell = path, writer, reader, room, tell
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            self._locks = Locks(self._fd)
            self._locks.take(_IN_USE, shared=True)
            with self._locks.holding(_MUTEX):
                table = prepare(self._fd, path, count, room())
                self._header, self._entries = table
                self._header["owners"] += 1
                self._owner = int(self._header["owners"])
        except BaseException:
            os.close(self._fd)
            raise
        self._data: Mapping | None = None  # all of the file that was there when it was mapped
        self._claimed: set[int] = set()
        self._pending: list[tuple[int, Record]] = []
        self._pending_bytes = 0
        self._trust = _Trust(count, int(self._header["tail"]))

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def look(self, keys: Sequence[int]) -> dict[int, Any]:
        rows = self._entries[np.asarray(keys)]
        ready = rows["state"] == _READY
        if not ready.all():
            keys = np.asarray(keys)[ready].tolist()
            rows = rows[ready]
        if not len(keys):
            return {}
        damaged = self._damaged(keys, rows)
        data = self._data
        assert data is not None
        found = zip(
            keys, rows["offset"].tolist(), rows["nbytes"].tolist(), rows["form"].tolist(), rows["aside"].tolist(),
            strict=True,
        )  # fmt: skip
        sample = self._reader.sample
        return {key: sample(data.buffer, Found(*place)) for key, *place in found if key not in damaged}

    @contextlib.contextmanager
    def claiming(self, keys: Sequence[int]) -> Iterator[Claims]:
        self._locks.take(_OWNERS + self._owner)
        try:
            yield self._claim(keys)
            self._flush()
        finally:
            self.let_go()

    def put(self, key: int, sample: Any) -> None:
        record = self._writer.record(sample)
        self._pending.append((key, record))
        self._pending_bytes += record.nbytes
        if self._pending_bytes >= _FLUSH_BYTES:
            self._flush()

    def wait_for(self, other: int) -> None:
        self._locks.take(_OWNERS + other, shared=True)
        self._locks.release(_OWNERS + other)

    def let_go(self) -> None:
        """Gives all claims back. May be called from another thread, for a worker that is given up."""
        self._pending, self._pending_bytes = [], 0
        claimed, self._claimed = self._claimed, set()
        with self._locks.holding(_MUTEX):
            for key in claimed:
                entry = self._entries[key]
                if entry["state"] == _CLAIMED and entry["owner"] == self._owner:
                    entry["state"] = _EMPTY
        self._locks.release(_OWNERS + self._owner)

    def _claim(self, keys: Sequence[int]) -> Claims:
        mine, other = [], None
        with self._locks.holding(_MUTEX):
            for key in keys:
                entry = self._entries[key]
                owner = int(entry["owner"])
                if entry["state"] == _CLAIMED and owner != self._owner and not self._is_gone(owner):
                    other = owner
                elif entry["state"] != _READY:
                    entry["owner"], entry["state"] = self._owner, _CLAIMED
                    self._claimed.add(key)
                    mine.append(key)
        return Claims(mine, other)

    def _is_gone(self, owner: int) -> bool:
        """Whether it holds its lock no more: it is dead, or has let go and is about to say so."""
        if not self._locks.try_take(_OWNERS + owner):
            return False
        self._locks.release(_OWNERS + owner)
        return True

    def _flush(self) -> None:
        """Writes what was put, then its entries."""
        pending, self._pending, self._pending_bytes = self._pending, [], 0
        if not pending:
            return
        starts, end = [], 0
        for _, record in pending:
            starts.append(end)
            end += -(-record.nbytes // _ALIGN) * _ALIGN
        base = self._reserve(end)
        if base is None:
            return
        rows = np.zeros(len(pending), ENTRY)
        pieces: list[bytes | memoryview] = []
        for row, start, (key, record) in zip(rows, starts, pending, strict=True):
            own = list(record.pieces())
            place = base + start, record.nbytes, record.number, record.aside
            row["offset"], row["nbytes"], row["form"], row["aside"] = place
            row["check"] = _check_of(own, key, place)
            pieces += [*own, bytes(-record.nbytes % _ALIGN)]
        if self._write(pieces, base, end):
            self._publish([key for key, _ in pending], rows)

    def _reserve(self, nbytes: int) -> int | None:
        """Where so many bytes may be written, or None if there is no room."""
        with self._locks.holding(_MUTEX):
            tail = int(self._header["tail"])
            if tail + nbytes > self._room():
                self._tell("it has reached max_bytes: what is not in it is made as without a cache")
                return None
            self._header["tail"] = tail + nbytes
            return tail

    def _write(self, pieces: list[bytes | memoryview], start: int, nbytes: int) -> bool:
        pieces = [piece for piece in pieces if len(piece)]
        end = start
        try:
            while pieces:
                written = os.pwritev(self._fd, pieces[:_MOST_PIECES], end)
                if written < sum(map(len, pieces[:_MOST_PIECES])):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                del pieces[:_MOST_PIECES]
                end += written
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            self._give_back(start, nbytes)
            self._tell(f"{error.strerror}: what is not in it is made as without a cache")
            return False
        return True

    def _give_back(self, start: int, nbytes: int) -> None:
        with self._locks.holding(_MUTEX):
            if self._header["tail"] == start + nbytes:
                self._header["tail"] = start
                os.ftruncate(self._fd, start)

    def _publish(self, keys: list[int], rows: Any) -> None:
        with self._locks.holding(_MUTEX):
            for key, row in zip(keys, rows, strict=True):
                entry = self._entries[key]
                if entry["state"] == _CLAIMED and entry["owner"] == self._owner:
                    row["owner"], row["state"] = self._owner, _CLAIMED
                    self._entries[key] = row
                    entry["state"] = _READY
                self._claimed.discard(key)
            self._header["published"] += 1

    def _damaged(self, keys: Sequence[int], rows: Any) -> set[int]:
        """Those whose bytes are not what was written; they are as if they were not there."""
        status = os.fstat(self._fd)
        ends = rows["offset"] + rows["nbytes"]
        if self._data is None or int(ends.max()) > self._data.size:
            self._data = Mapping(self._fd, status.st_size, 0, Sharing.PRIVATE)
        self._trust.look(status.st_mtime_ns, int(self._header["published"]))
        damaged = set()
        for k in np.flatnonzero(~self._trust.known(keys, rows["offset"], ends <= self._data.size)).tolist():
            if self._is_sound(keys[k], rows[k], self._data):
                self._trust.add(keys[k])
            else:
                damaged.add(keys[k])
                self._discard(keys[k], rows[k])
        return damaged

    def _is_sound(self, key: int, row: Any, data: Mapping) -> bool:
        place = int(row["offset"]), int(row["nbytes"]), int(row["form"]), int(row["aside"])
        start, nbytes = place[:2]
        if start + nbytes > data.size or not nbytes:
            return False
        return bool(_check_of([data.buffer[start : start + nbytes]], key, place) == row["check"])

    def _discard(self, key: int, row: Any) -> None:
        with self._locks.holding(_MUTEX):
            if self._entries[key] == row:  # else somebody has made it again
                self._entries[key]["state"] = _EMPTY
                self._tell(f"sample {key} is damaged (its checksum is wrong), and is made again")


class _Trust:
    """Which samples need not be checked again: those that were, or were written while this worker looked on.

    If the file has changed and no worker has written to it, nothing is trusted any more.
    """

    def __init__(self, count: int, tail: int) -> None:
        self._checked = np.zeros(count, bool)
        self._from = tail
        self._seen: tuple[int, int] | None = None

    def look(self, changed: int, published: int) -> None:
        if self._seen is not None and changed != self._seen[0] and published == self._seen[1]:
            self._checked[:] = False
            self._from = 2**63
        self._seen = changed, published

    def known(self, keys: Sequence[int], offsets: Any, within: Any) -> Any:
        return (self._checked[np.asarray(keys)] | (offsets >= self._from)) & within

    def add(self, key: int) -> None:
        self._checked[key] = True


def prepare(fd: int, path: str, count: int, room: float) -> tuple[Any, Any]:
    """Header and table of the file, made if it is empty."""
    start = -(-(HEADER_BYTES + count * ENTRY.itemsize) // _ALIGN) * _ALIGN
    size = os.fstat(fd).st_size
    if size == 0:
        if start > room:
            raise OSError(errno.ENOSPC, f"its table alone takes {start:,} bytes, more than max_bytes allows")
        os.posix_fallocate(fd, 0, start)
    elif size < start:
        _refuse(path, count, size)
    header, entries = tables(fd, start, count)
    if size == 0 or not header["magic"]:
        header["count"], header["start"], header["tail"] = count, start, start
        header["magic"] = MAGIC
    if header["magic"] != MAGIC or header["count"] != count:
        _refuse(path, count, size)
    return header, entries


def tables(fd: int, start: int, count: int) -> tuple[Any, Any]:
    """Header and table, as all who map the file see them."""
    mapping = Mapping(fd, start, 0, populate=False)
    header = np.ndarray((), HEADER, mapping.buffer)
    return header, np.ndarray(count, ENTRY, mapping.buffer, HEADER_BYTES)


def _refuse(path: str, count: int, size: int) -> None:
    with open(path, "rb") as file:
        found = np.frombuffer(file.read(HEADER_BYTES).ljust(HEADER_BYTES, b"\0"), HEADER, 1)[0]
    if found["magic"] != MAGIC:
        raise CacheError(f"{path} ({size:,} bytes) is no cache of Stoker's: give Cache a folder of its own")
    raise CacheError(
        f"{path} is a cache of {found['count']} samples and this dataset has {count}: give Cache another folder, "
        f"or remove this one with `stoker cache rm {os.path.dirname(path)}`"
    )


def _check_of(pieces: Sequence[bytes | memoryview], key: int, place: tuple[int, ...]) -> int:
    """The checksum of a sample at its place."""
    seed = xxhash.xxh3_64_intdigest(_PLACE.pack(key, *place))
    if len(pieces) == 1:
        return xxhash.xxh3_64_intdigest(pieces[0], seed)
    digest = xxhash.xxh3_64(seed=seed)
    for piece in pieces:
        digest.update(piece)
    return digest.intdigest()
