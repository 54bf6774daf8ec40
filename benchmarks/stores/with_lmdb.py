"""LMDB: a B+ tree in one mapped file; one writer at a time, readers never wait."""

from __future__ import annotations

from pathlib import Path

import lmdb
import numpy as np

from benchmarks.stores.kinds import Kind

_MAP = 8 << 30  # bytes of address space, more than any kind needs


def _key(index: int) -> bytes:
    return index.to_bytes(8, "big")  # sorted as the indices are, so that pages fill in order


class Writer:
    def __init__(self, directory: Path, kind: Kind, number: int, *, writemap: bool) -> None:
        self._env = lmdb.open(str(directory), map_size=_MAP, sync=False, metasync=False, writemap=writemap)

    def put(self, indices: np.ndarray, records: np.ndarray) -> None:
        with self._env.begin(write=True, buffers=True) as transaction:
            pairs = zip(map(_key, indices.tolist()), (record.data for record in records), strict=True)
            transaction.cursor().putmulti(pairs)

    def close(self) -> None:
        self._env.close()


class Reader:
    def __init__(self, directory: Path, kind: Kind) -> None:
        self._env = lmdb.open(str(directory), map_size=_MAP, readonly=True, readahead=False)
        self._transaction = self._env.begin(buffers=True)

    def read(self, indices: np.ndarray, out: np.ndarray) -> None:
        get = self._transaction.get
        found = [get(_key(index)) for index in indices.tolist()]
        if None in found:
            raise KeyError(indices[found.index(None)])
        np.concatenate([np.frombuffer(one, np.uint8) for one in found], out=out.reshape(-1))

    def present(self) -> np.ndarray:
        keys = self._transaction.cursor().iternext(keys=True, values=False)
        return np.array([int.from_bytes(key, "big") for key in keys], np.int64)

    def close(self) -> None:
        self._transaction.abort()
        self._env.close()
