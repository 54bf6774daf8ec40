"""One generation of a cache: a file that all workers and consumers of a machine map, and append to.

    | header | table: one entry a sample | sample | sample | ...

A sample is written behind all others, then its entry. Whoever is killed in between leaves a gap that nobody reads. An
entry's checksum is over the sample, its location and its index, so it also finds an entry that is damaged itself.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import xxhash

from stoker.memory import MappedFile, Sharing
from stoker.memory.array_layout import aligned
from stoker.stores.cache_folder import IN_USE, open_file
from stoker.stores.cache_layout import ENTRY, check_of, prepare, tail_of
from stoker.stores.claims import CLAIMED, EMPTY, READY, Claimed, Claims
from stoker.stores.membership import Membership
from stoker.stores.record_codec import Overwritten, RecordDecoder, RecordEncoder
from stoker.stores.verified_samples import VerifiedSamples

_FLUSH_BYTES = 2**22  # samples are written together: 150 KB by itself costs twice as much as in such a piece
_MOST_NAMED = 20  # damaged samples, by each worker: a file that was cut short may have a million
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


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
        self._path, self._encoder, self._decoder, self._room, self._tell = path, encoder, decoder, room, tell
        self._fd = open_file(path, os.O_RDWR, make=True)
        self._member = Membership(self._fd)
        try:
            is_alone = self._member.locks.try_take(IN_USE)
            self._member.locks.take(IN_USE, shared=True)
            with self._member.changing():
                self._header, self._entries = prepare(self._fd, path, count, limit, tell)
                self._header["tail"] = tail_of(self._fd, 0 if is_alone else int(self._header["tail"]))
                self._header["owners"] += 1
                if is_alone:
                    self._header["first"] = self._header["owners"]
                self._header["changes"] += 1
                self._member.number = int(self._header["owners"])
        except BaseException:
            self._member.locks.release_all()
            os.close(self._fd)
            raise
        self._data: MappedFile | None = None  # all of the file that was there when it was mapped
        self._claims = Claims(self._member, self._entries)
        self._pending: list[tuple[int, tuple[int, ...], int]] = []  # key, location in the scratch, checksum
        self._scratch, self._filled = np.empty(0, np.uint8), 0
        self._found_damaged = 0
        self._longest = 0  # the file, as far as this worker knows
        self._needed, self._discarded = 0, 0  # how long it must be, and what the header told, for this batch
        self._verified = VerifiedSamples(count, int(self._header["tail"]), int(self._header["first"]))

    def close(self) -> None:
        if self._fd >= 0:
            self._member.locks.release_all()
            os.close(self._fd)
            self._fd = -1

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
        start, nbytes = self._filled, record.nbytes
        if start and start + nbytes > _FLUSH_BYTES:
            self._flush()
            start = 0
        if start + nbytes > len(self._scratch):
            self._scratch = np.zeros(max(_FLUSH_BYTES, nbytes), np.uint8)
        record.write(self._scratch.data, start)
        digest = xxhash.xxh3_64_intdigest(self._scratch.data[start : start + nbytes])
        self._pending.append((key, (start, nbytes, record.number, record.aside), digest))
        self._filled = start + aligned(nbytes)

    def wait_for(self, other: int) -> None:
        self._member.wait_for(other)

    def abandon(self) -> None:
        """From another thread, for a worker that is given up."""
        if self._fd < 0:
            return
        with self._member.changing_from_another_thread():
            if self._claims.abandon():
                self._note_change()
        self._member.end()

    def _let_go(self) -> None:
        """Gives all claims back."""
        self._pending, self._filled = [], 0
        if self._fd < 0:  # Ctrl-C came in between, and has closed it
            return
        with self._member.changing():
            if self._claims.release():
                self._note_change()
        self._member.end()

    def _claim(self, keys: Sequence[int]) -> Claimed:
        with self._member.changing():
            self._look_for_changes()
            claimed = self._claims.claim(keys)
            self._note_change()
        return claimed

    def _flush(self) -> None:
        """Writes what was put, then its entries."""
        pending, self._pending, filled, self._filled = self._pending, [], self._filled, 0
        base = self._reserve(filled) if pending else None
        if base is None or not self._write(self._scratch[:filled], base, filled):
            return
        rows = np.zeros(len(pending), ENTRY)
        for row, (key, (start, *rest), digest) in zip(rows, pending, strict=True):
            location = base + start, *rest
            row["offset"], row["nbytes"], row["form"], row["aside"] = location
            row["check"] = check_of(digest, key, location)
        self._publish(np.array([key for key, *_ in pending]), rows)

    def _reserve(self, nbytes: int) -> int | None:
        """Where so many bytes may be written, or None if there is no room."""
        with self._room() as room, self._member.changing():
            self._time_of_change()  # before it gets longer again
            tail = tail_of(self._fd, int(self._header["tail"]))
            if tail + nbytes > room:
                self._tell("it has reached max_bytes. Samples that are not in it are made by the dataset")
                return None
            if room < math.inf:
                os.ftruncate(self._fd, tail + nbytes)  # so that others count it
            self._header["tail"] = tail + nbytes
            return tail

    def _write(self, data: Any, start: int, reserved: int) -> bool:
        done = 0
        try:
            while done < len(data):  # one call writes 2 GiB at most
                done += os.pwrite(self._fd, data[done:], start + done)
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            self._give_back(start, reserved)
            self._tell(f"{error.strerror}. Samples that are not in it are made by the dataset")
            return False
        return True

    def _give_back(self, start: int, nbytes: int) -> None:
        with self._member.changing():
            if self._header["tail"] == start + nbytes:
                self._header["tail"] = start
                os.ftruncate(self._fd, start)

    def _publish(self, keys: Any, rows: Any) -> None:
        rows["owner"], rows["state"] = self._member.number, CLAIMED
        with self._member.changing():
            self._claims.publish(keys, rows, self._claims.held(keys))
            self._note_change()

    def _damaged(self, keys: Sequence[int], rows: Any) -> set[int]:
        """Those whose bytes are not what was written; they are as if they were not there."""
        status = os.fstat(self._fd)
        ends = rows["offset"] + rows["nbytes"]
        if self._data is None or int(ends.max()) > self._data.size:
            self._data = MappedFile(self._fd, status.st_size, 0, Sharing.PRIVATE)
        self._look_for_changes()
        damaged, size = set(), min(self._data.size, status.st_size)
        for k in np.flatnonzero(~self._verified.known(keys, rows, ends <= size)).tolist():
            if self._is_sound(keys[k], rows[k], self._data, size):
                self._verified.add(keys[k])
            else:
                damaged.add(keys[k])
                self._discard(keys[k], rows[k])
        return damaged

    def _look_for_changes(self) -> None:
        """Before this worker changes or reads anything: whether somebody has changed the file who is no worker."""
        time_of_change = self._time_of_change()
        self._verified.look(time_of_change, int(self._header["changes"]), int(self._header["discarded"]))

    def _note_change(self) -> None:
        """This worker has changed the file. To be called with the mutex, as others do it too."""
        self._header["changes"] += 1
        self._verified.note(self._time_of_change(), int(self._header["changes"]))

    def _time_of_change(self) -> int:
        """Of the file. If it has become shorter, all are to look closely."""
        status = os.fstat(self._fd)
        if status.st_size < self._longest:
            self._header["discarded"] += 1
        self._longest = status.st_size
        return status.st_mtime_ns

    def _reaches(self, end: int) -> bool:
        return os.fstat(self._fd).st_size >= end

    def _is_sound(self, key: int, row: Any, data: MappedFile, size: int) -> bool:
        location = int(row["offset"]), int(row["nbytes"]), int(row["form"]), int(row["aside"])
        start, nbytes = location[:2]
        if start + nbytes > size or not nbytes:
            return False
        digest = xxhash.xxh3_64_intdigest(data.buffer[start : start + nbytes])
        return bool(check_of(digest, key, location) == row["check"])

    def _discard(self, key: int, row: Any) -> None:
        with self._member.changing():
            if self._entries[key] == row:  # else somebody has made it again
                self._entries[key]["state"] = EMPTY
                self._header["discarded"] += 1  # so that all look closely
                self._found_damaged += 1
                if self._found_damaged <= _MOST_NAMED:
                    self._tell(f"sample {key} is damaged (its checksum is wrong) and is made again")
                else:
                    self._tell(f"more than {_MOST_NAMED} samples are damaged; all of them are made again")
