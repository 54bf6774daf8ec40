"""One generation of a cache: a file that all workers and consumers of a machine map, and append to.

    | header | table: one entry a sample | sample | sample | ...

A sample is written behind all others, then its entry. Whoever is killed in between leaves a gap that nobody reads. An
entry's checksum is over the sample, its location and its index, so it also finds an entry that is damaged itself.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import xxhash

from stoker.memory import MappedFile, Sharing
from stoker.stores.cache_changes import CacheChanges
from stoker.stores.cache_folder import IN_USE, open_file
from stoker.stores.cache_layout import check_of, prepare, tail_of
from stoker.stores.cache_tail import CacheTail, GatheredSamples
from stoker.stores.claims import CLAIMED, EMPTY, READY, Claimed, Claims
from stoker.stores.descriptor import Descriptor
from stoker.stores.membership import Membership
from stoker.stores.record_codec import Overwritten, RecordDecoder, RecordEncoder

_MOST_NAMED = 20  # damaged samples, by each worker: a file that was cut short may have a million


class CacheFile:
    """A generation as one worker has it open. Made in a folder that nobody else changes meanwhile.

    Args:
        path: The file; made if it is not there.
        count: Samples of the dataset.
        encoder: Makes records of samples.
        decoder: Makes samples of records.
        room: Tells how many bytes the file may have, and keeps others from growing meanwhile.
        limit: The same, now.
        tell: Called with what the user should know.

    Raises:
        CacheError: The file is of a dataset of another length, or none of ours.
        OSError: No room for the table.
    """

    def __init__(
        self,
        path: str,
        count: int,
        encoder: RecordEncoder,
        decoder: RecordDecoder,
        room: Callable[[], AbstractContextManager[float]],
        limit: float,
        tell: Callable[[str], None],
    ) -> None:
        self._encoder, self._decoder, self._tell = encoder, decoder, tell
        self._file = Descriptor(open_file(path, os.O_RDWR, make=True))
        self._member = Membership(self._file.number)
        try:
            is_alone = self._member.locks.try_take(IN_USE)
            self._member.locks.take(IN_USE, shared=True)
            with self._member.changing():
                self._header, self._entries = prepare(self._file.number, path, count, limit, tell)
                self._header["tail"] = tail_of(self._file.number, 0 if is_alone else int(self._header["tail"]))
                self._header["owners"] += np.uint32(1)
                if is_alone:
                    self._header["first"] = self._header["owners"]
                self._header["changes"] += np.uint32(1)
                self._member.number = int(self._header["owners"])
        except BaseException:
            self._member.locks.release_all()
            self._file.close()
            raise
        self._data: MappedFile | None = None  # all of the file that was there when it was mapped
        self._claims = Claims(self._member, self._entries)
        self._changes = CacheChanges(self._file, self._header, count)
        self._tail = CacheTail(self._file, self._header, self._member, self._changes, room, tell)
        self._gathered = GatheredSamples()
        self._found_damaged = 0
        self._needed, self._discarded = 0, 0  # how long it must be, and what the header told, for this batch

    def close(self) -> None:
        if self._file.is_open:
            self._member.locks.release_all()
            self._file.close()

    def begin(self) -> None:
        """A batch begins."""
        self._needed, self._discarded = 0, int(self._header["discarded"])

    def is_unharmed(self) -> bool:
        """Whether all that was looked at for this batch is still there: views of what was cut off are zeros."""
        return self._reaches(self._needed) and bool(self._header["discarded"] == self._discarded)

    def look(self, keys: Sequence[int]) -> dict[int, Any]:
        rows = self._entries[np.asarray(keys)]
        ready = rows["state"] == READY
        if not ready.all():
            keys = np.asarray(keys)[ready].tolist()
            rows = rows[ready]
        if not len(keys):
            return {}
        damaged = self._damaged(keys, rows)
        if damaged:
            rows = rows[[key not in damaged for key in keys]]
            keys = [key for key in keys if key not in damaged]
            if not keys:
                return {}
        assert self._data is not None
        locations = rows["offset"].tolist(), rows["nbytes"].tolist(), rows["form"].tolist(), rows["aside"].tolist()
        end = int((rows["offset"] + rows["nbytes"]).max())
        self._needed = max(self._needed, end)
        try:
            samples = self._decoder.samples(self._data.buffer, *locations, still_there=lambda: self._reaches(end))
        except Overwritten:
            return self.look(keys)
        return dict(zip(keys, samples, strict=True))

    @contextlib.contextmanager
    def claiming(self, keys: Sequence[int]) -> Iterator[Claimed]:
        self._member.begin()
        try:
            yield self._claim(keys)
            self._flush()
        finally:
            self._let_go()

    def put(self, key: int, sample: Any) -> None:
        record = self._encoder.record(sample)
        if not self._gathered.has_room_for(record):
            self._flush()
        self._gathered.add(key, record)

    def wait_for(self, other: int) -> None:
        self._member.wait_for(other)

    def abandon(self) -> None:
        """From another thread, for a worker that is given up."""
        if not self._file.is_open:
            return
        with self._member.changing_from_another_thread():
            if self._claims.abandon():
                self._changes.note()
        self._member.end()

    def _let_go(self) -> None:
        """Gives all claims back."""
        self._gathered.clear()
        if not self._file.is_open:  # Ctrl-C came in between, and has closed it
            return
        with self._member.changing():
            if self._claims.release():
                self._changes.note()
        self._member.end()

    def _claim(self, keys: Sequence[int]) -> Claimed:
        with self._member.changing():
            self._changes.look()
            claimed = self._claims.claim(keys)
            self._changes.note()
        return claimed

    def _flush(self) -> None:
        """Writes what was put, then its entries."""
        written = self._gathered.append_to(self._tail)
        if written is None:
            return
        keys, rows = written
        rows["owner"], rows["state"] = self._member.number, CLAIMED
        with self._member.changing():
            self._claims.publish(keys, rows, self._claims.held(keys))
            self._changes.note()

    def _damaged(self, keys: Sequence[int], rows: Any) -> set[int]:
        """Those whose bytes are not what was written; they are as if they were not there."""
        status = os.fstat(self._file.number)
        ends = rows["offset"] + rows["nbytes"]
        if self._data is None or int(ends.max()) > self._data.size:
            self._data = MappedFile(self._file.number, status.st_size, 0, Sharing.PRIVATE)
        self._changes.look()
        damaged, size = set(), min(self._data.size, status.st_size)
        for k in self._changes.unchecked(keys, rows, ends <= size):
            if _is_sound(keys[k], rows[k], self._data, size):
                self._changes.checked(keys[k])
            else:
                damaged.add(keys[k])
                self._discard(keys[k], rows[k])
        return damaged

    def _reaches(self, end: int) -> bool:
        return os.fstat(self._file.number).st_size >= end

    def _discard(self, key: int, row: Any) -> None:
        with self._member.changing():
            if self._entries[key] == row:  # else somebody has made it again
                self._entries[key]["state"] = EMPTY
                self._header["discarded"] += np.uint32(1)  # so that all look closely
                self._found_damaged += 1
                if self._found_damaged <= _MOST_NAMED:
                    self._tell(f"sample {key} is damaged (its checksum is wrong) and is made again")
                else:
                    self._tell(f"more than {_MOST_NAMED} samples are damaged; all of them are made again")


def _is_sound(key: int, row: Any, data: MappedFile, size: int) -> bool:
    """Whether its bytes are what was written."""
    location = int(row["offset"]), int(row["nbytes"]), int(row["form"]), int(row["aside"])
    start, nbytes = location[:2]
    if start + nbytes > size or not nbytes:
        return False
    digest = xxhash.xxh3_64_intdigest(data.buffer[start : start + nbytes])
    return bool(check_of(digest, key, location) == row["check"])
