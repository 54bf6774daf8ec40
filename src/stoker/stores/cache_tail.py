"""Samples on their way into a cache: they are gathered, and appended to its file together."""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np
import xxhash

from stoker.memory.array_layout import aligned
from stoker.stores.cache_changes import CacheChanges
from stoker.stores.cache_layout import ENTRY, check_of, tail_of
from stoker.stores.descriptor import Descriptor
from stoker.stores.membership import Membership
from stoker.stores.record_codec import SampleRecord

_FLUSH_BYTES = 2**22  # samples are written together: 150 KB by itself costs twice as much as in such a piece
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class _Gathered(NamedTuple):
    key: int
    location: tuple[int, ...]  # in the scratch, and further columns of its entry
    digest: int


class GatheredSamples:
    """Samples that were put and not yet written."""

    def __init__(self) -> None:
        self._samples: list[_Gathered] = []
        self._scratch, self._filled = np.empty(0, np.uint8), 0

    def has_room_for(self, record: SampleRecord) -> bool:
        """One that is larger than all room there is goes by itself."""
        return not self._filled or self._filled + record.nbytes <= _FLUSH_BYTES

    def add(self, key: int, record: SampleRecord) -> None:
        start, nbytes = self._filled, record.nbytes
        if start + nbytes > len(self._scratch):
            self._scratch = np.zeros(max(_FLUSH_BYTES, nbytes), np.uint8)
        record.write(self._scratch.data, start)
        digest = xxhash.xxh3_64_intdigest(self._scratch.data[start : start + nbytes])
        self._samples.append(_Gathered(key, (start, nbytes, record.number, record.aside), digest))
        self._filled = start + aligned(nbytes)

    def clear(self) -> None:
        self._samples, self._filled = [], 0

    def append_to(self, tail: CacheTail) -> tuple[Any, Any] | None:
        """Writes them, and has none any more. Their keys and the entries for them; None if there were none, or there
        was no room."""
        samples, self._samples, filled, self._filled = self._samples, [], self._filled, 0
        base = tail.append(self._scratch[:filled]) if samples else None
        if base is None:
            return None
        rows = np.zeros(len(samples), ENTRY)
        for row, (key, (start, *rest), digest) in zip(rows, samples, strict=True):
            location = base + start, *rest
            row["offset"], row["nbytes"], row["form"], row["aside"] = location
            row["check"] = check_of(digest, key, location)
        return np.array([key for key, *_ in samples]), rows


class CacheTail:
    """The end of a generation's file. What was reserved there is one worker's to write.

    Args:
        file: That of the generation.
        header: As all who map it see it.
        member: This worker's part in it.
        changes: Of the file.
        room: Tells how many bytes the file may have, and keeps others from growing meanwhile.
        tell: Called with what the user should know.
    """

    def __init__(
        self,
        file: Descriptor,
        header: Any,
        member: Membership,
        changes: CacheChanges,
        room: Callable[[], AbstractContextManager[float]],
        tell: Callable[[str], None],
    ) -> None:
        self._file, self._header, self._member, self._changes = file, header, member, changes
        self._room, self._tell = room, tell

    def append(self, data: Any) -> int | None:
        """Where the bytes were written, or None if there is no room."""
        start = self._reserve(len(data))
        if start is None or not self._write(data, start):
            return None
        return start

    def _reserve(self, nbytes: int) -> int | None:
        with self._room() as room, self._member.changing():
            self._changes.time()  # before it gets longer again
            tail = tail_of(self._file.number, int(self._header["tail"]))
            if tail + nbytes > room:
                self._tell("it has reached max_bytes. Samples that are not in it are made by the dataset")
                return None
            if room < math.inf:
                os.ftruncate(self._file.number, tail + nbytes)  # so that others count it
            self._header["tail"] = tail + nbytes
            return tail

    def _write(self, data: Any, start: int) -> bool:
        done = 0
        try:
            while done < len(data):  # one call writes 2 GiB at most
                done += os.pwrite(self._file.number, data[done:], start + done)
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            self._give_back(start, len(data))
            self._tell(f"{error.strerror}. Samples that are not in it are made by the dataset")
            return False
        return True

    def _give_back(self, start: int, nbytes: int) -> None:
        with self._member.changing():
            if self._header["tail"] == start + nbytes:
                self._header["tail"] = start
                os.ftruncate(self._file.number, start)
