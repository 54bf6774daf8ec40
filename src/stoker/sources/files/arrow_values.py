"""Columns of Arrow's other types, where batches are to be Arrow's: they stay just what they are in the file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stoker.sources.files.opening import needed
from stoker.sources.files.ragged import Array


@dataclass(frozen=True, eq=False)
class ArrowValues:
    """An array of Arrow's. ``packed``: the bytes of a stream of it, so that it lies in a slot like any array."""

    packed: Array

    @staticmethod
    def of(array: Any) -> ArrowValues:
        pa, ipc = needed("pyarrow", "reading columns"), needed("pyarrow.ipc", "reading columns")
        batch, sink = pa.RecordBatch.from_arrays([array], names=["values"]), pa.BufferOutputStream()
        with ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        return ArrowValues(np.frombuffer(sink.getvalue(), np.uint8))

    def array(self) -> Any:
        """Over the bytes."""
        pa, ipc = needed("pyarrow", "reading columns"), needed("pyarrow.ipc", "reading columns")
        return ipc.open_stream(pa.py_buffer(self.packed)).read_next_batch().column(0)

    def __len__(self) -> int:
        return len(self.array())

    def part(self, start: int, stop: int) -> ArrowValues:
        """The values from one to another."""
        return ArrowValues.of(self.array().slice(start, stop - start))

    def take(self, rows: Array) -> ArrowValues:
        return ArrowValues.of(self.array().take(needed("pyarrow", "reading columns").array(rows)))

    def rows(self) -> list[Any]:
        return list(self.array().to_pylist())

    @staticmethod
    def joined(parts: Sequence[ArrowValues]) -> ArrowValues:
        """Several of one type, one behind the other."""
        arrays = [part.array() for part in parts]
        return ArrowValues.of(needed("pyarrow", "reading columns").concat_arrays(arrays))
