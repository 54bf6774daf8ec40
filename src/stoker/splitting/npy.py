"""Rows of a numpy file, copied as they are: no array is made."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np

from stoker.sources.files.arrays import parsed
from stoker.splitting.content import BufferedContent
from stoker.splitting.cutter import Written
from stoker.splitting.limit import Limit
from stoker.splitting.sink import Sink

_BYTES_AT_ONCE = 1 << 20


class NpyCutter:
    """An offset is in rows."""

    def __init__(self, stream: BufferedContent, limit: Limit, offset: int) -> None:
        self.offset = offset
        self._stream = stream
        self._shape, self._dtype = _read_header(stream)
        self._row = math.prod(self._shape[1:]) * self._dtype.itemsize
        self._most = limit.count or self._rows_within(limit.size or 0)
        stream.go_to(stream.offset + offset * self._row)

    def more(self) -> bool:
        return self.offset < self._shape[0]

    def write(self, sink: Sink) -> Written:
        rows = min(self._most, self._shape[0] - self.offset)
        header = self._header(rows)
        sink.write(header)
        left = rows * self._row
        while left:
            sink.write(self._stream.exactly(min(left, _BYTES_AT_ONCE)))
            left -= min(left, _BYTES_AT_ONCE)
        self.offset += rows
        return Written(rows, len(header) + rows * self._row)

    def close(self) -> None:
        self._stream.close()

    def _rows_within(self, size: int) -> int:
        """Numpy leaves room in the header, so that its length is the same for any number of rows."""
        if not self._row:
            return max(1, self._shape[0])
        return max(1, (size - len(self._header(self._shape[0]))) // self._row)

    def _header(self, rows: int) -> bytes:
        described: dict[str, Any] = {
            "descr": np.lib.format.dtype_to_descr(self._dtype),
            "fortran_order": False,
            "shape": (rows, *self._shape[1:]),
        }
        written = io.BytesIO()
        try:
            np.lib.format.write_array_header_1_0(written, described)
        except ValueError:  # longer than the first version allows
            written = io.BytesIO()
            np.lib.format.write_array_header_2_0(written, described)
        return written.getvalue()


def _read_header(stream: BufferedContent) -> tuple[tuple[int, ...], np.dtype[Any]]:
    begin = stream.exactly(8)
    width = 2 if begin[6] == 1 else 4
    length = stream.exactly(width)
    header = io.BytesIO(length + stream.exactly(int.from_bytes(length, "little")))
    try:
        version = np.lib.format.read_magic(io.BytesIO(begin))
        if version == (1, 0):
            shape, is_fortran, dtype = parsed(np.lib.format.read_array_header_1_0, header)
        elif version == (2, 0):
            shape, is_fortran, dtype = parsed(np.lib.format.read_array_header_2_0, header)
        else:
            raise ValueError(f"format {version} is not supported")
    except ValueError as error:
        raise stream.broken(f"no .npy that can be cut: {error}") from error
    if not shape or dtype.hasobject or (is_fortran and len(shape) > 1):
        raise ValueError(
            f"{stream.shown} holds an array of shape {shape} and type {dtype}{', by columns' if is_fortran else ''}: "
            "split cuts arrays that have rows, hold no objects, and lie row by row (np.ascontiguousarray)"
        )
    return shape, dtype
