"""Arrow IPC files: each writer appends record batches to one of its own; readers map them all.

There is no index but what a reader builds when it opens the files, so it sees only files that were closed before; and
there is no way to put a record between others, or to replace one.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.stores.kinds import Kind


class Writer:
    def __init__(self, directory: Path, kind: Kind, number: int) -> None:
        self._record = pa.binary(kind.size)
        self._schema = pa.schema({"index": pa.int64(), "record": self._record})
        self._file = pa.OSFile(str(directory / f"{number}.arrow"), "wb")
        self._writer = pa.ipc.new_file(self._file, self._schema)

    def put(self, indices: np.ndarray, records: np.ndarray) -> None:
        column = pa.FixedSizeBinaryArray.from_buffers(self._record, len(records), [None, pa.py_buffer(records)])
        self._writer.write_batch(pa.record_batch([pa.array(indices), column], schema=self._schema))

    def close(self) -> None:
        self._writer.close()  # writes the footer, without which the file is not a file
        self._file.close()


class Reader:
    def __init__(self, directory: Path, kind: Kind) -> None:
        self._chunks: list[np.ndarray] = []  # of records, one a record batch
        self._chunk = np.full(kind.count, -1, np.int32)
        self._row = np.zeros(kind.count, np.int32)
        for path in sorted(directory.glob("*.arrow")):
            self._add(path, kind)

    def read(self, indices: np.ndarray, out: np.ndarray) -> None:
        places = self._chunk[indices]
        if (places < 0).any():
            raise KeyError(indices[places < 0][0])
        chunks = self._chunks
        views = [chunks[chunk][row] for chunk, row in zip(places.tolist(), self._row[indices].tolist(), strict=True)]
        np.concatenate(views, out=out.reshape(-1))

    def present(self) -> np.ndarray:
        return np.flatnonzero(self._chunk >= 0)

    def close(self) -> None:
        self._chunks.clear()

    def _add(self, path: Path, kind: Kind) -> None:
        try:
            file = pa.ipc.open_file(pa.memory_map(str(path)))
        except pa.ArrowInvalid:
            return  # no footer: it is being written, or its writer died
        for place in range(file.num_record_batches):
            batch = file.get_batch(place)
            indices = batch.column("index").to_numpy()
            self._chunk[indices] = len(self._chunks)
            self._row[indices] = np.arange(len(indices))
            self._chunks.append(np.frombuffer(batch.column("record").buffers()[1], np.uint8).reshape(-1, kind.size))
