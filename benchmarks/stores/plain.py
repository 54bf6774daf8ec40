"""The prototype: a table of where each sample lies, mapped by all, and a data file that only grows.

    index:  4,096 bytes of tails (one u64 a data file), then 32 bytes a sample: offset, length, file, xxh3, state
    data-k: samples one behind the other

Writer: reserves a span at the tail under a short lock; writes it with one call; fills in the entries; sets their
state last. So an entry that is READY points to whole bytes, and a writer that dies loses the span it was writing: a
hole in the file, which no entry points to. The kernel gives its lock back.

Reader: gathers the entries of a batch with one numpy call and takes views of the mapped data.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from pathlib import Path

import numpy as np
import xxhash

from benchmarks.stores.kinds import Kind

_HEADER = 4096  # bytes: a page of tails
_ENTRY = np.dtype([("offset", "<u8"), ("length", "<u4"), ("file", "<u4"), ("hash", "<u8"), ("state", "<u8")])
_READY = 1
_NEAR = 512 << 10  # bytes copied before they are hashed, so that they are still in the L2 cache


class Writer:
    def __init__(self, directory: Path, kind: Kind, number: int, *, own_segment: bool) -> None:
        self._file = number if own_segment else 0
        self._index = os.open(directory / "index", os.O_RDWR | os.O_CREAT, 0o600)
        self._data = os.open(directory / f"data-{self._file:02}", os.O_WRONLY | os.O_CREAT, 0o600)
        os.ftruncate(self._index, _HEADER + kind.count * _ENTRY.itemsize)
        mapped = mmap.mmap(self._index, 0)
        self._tails = np.frombuffer(mapped, "<u8", _HEADER // 8)
        self._entries = np.frombuffer(mapped, _ENTRY, offset=_HEADER)

    def put(self, indices: np.ndarray, records: np.ndarray) -> None:
        entries = np.zeros(len(records), _ENTRY)
        entries["hash"] = [xxhash.xxh3_64_intdigest(record) for record in records]
        entries["length"] = records.shape[1]
        entries["file"] = self._file
        begin = self._reserve(records.nbytes)
        entries["offset"] = np.arange(begin, begin + records.nbytes, records.shape[1])
        if os.pwritev(self._data, [records], begin) != records.nbytes:
            raise OSError("the data file took only a part of the batch; is the disk full?")
        self._entries[indices] = entries
        self._entries["state"][indices] = _READY

    def close(self) -> None:
        os.close(self._data)
        os.close(self._index)

    def _reserve(self, span: int) -> int:
        fcntl.flock(self._index, fcntl.LOCK_EX)
        try:
            begin = int(self._tails[self._file])
            self._tails[self._file] = begin + span
        finally:
            fcntl.flock(self._index, fcntl.LOCK_UN)
        return begin


class Reader:
    def __init__(self, directory: Path, kind: Kind, *, verify: bool) -> None:
        self._entries = _map(directory / "index")[_HEADER:].view(_ENTRY)
        self._files = [_map(path) for path in sorted(directory.glob("data-*"))]
        self._verify = verify
        self._near = max(1, _NEAR // kind.size)

    def read(self, indices: np.ndarray, out: np.ndarray) -> None:
        entries = self._entries[indices]
        if (entries["state"] != _READY).any():
            raise KeyError(indices[entries["state"] != _READY][0])
        views = self._views(entries)
        if not self._verify:
            np.concatenate(views, out=out.reshape(-1))
            return
        hashes = entries["hash"].tolist()
        for begin in range(0, len(views), self._near):
            part = out[begin : begin + self._near]
            np.concatenate(views[begin : begin + self._near], out=part.reshape(-1))
            if [xxhash.xxh3_64_intdigest(record) for record in part] != hashes[begin : begin + self._near]:
                raise ValueError("a sample is not what was written; delete the cache")

    def present(self) -> np.ndarray:
        return np.flatnonzero(self._entries["state"] == _READY)

    def close(self) -> None:
        self._files.clear()

    def _views(self, entries: np.ndarray) -> list[np.ndarray]:
        offsets = entries["offset"]
        spans = zip(offsets.tolist(), (offsets + entries["length"]).tolist(), strict=True)
        if len(self._files) == 1:
            data = self._files[0]
            return [data[begin:end] for begin, end in spans]
        files = self._files
        return [files[file][begin:end] for file, (begin, end) in zip(entries["file"].tolist(), spans, strict=True)]


def _map(path: Path) -> np.ndarray:
    if path.stat().st_size == 0:  # its writer has just begun
        return np.zeros(0, np.uint8)
    with path.open("rb") as file:
        return np.frombuffer(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ), np.uint8)
