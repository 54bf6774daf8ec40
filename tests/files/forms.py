"""The same samples written in each form that Stoker reads, and read back as plain values to compare."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import tarfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
import zstandard

from stoker.sources.files.columns import Columns

Rows = list[dict[str, Any]]


def rows(count: int) -> Rows:
    """Samples of a number and a word."""
    return [{"number": i * 7 - 3, "word": f"wörd {i}"} for i in range(count)]


def _lines(samples: Rows) -> bytes:
    return b"".join(json.dumps(sample).encode() + b"\n" for sample in samples)


def _table(samples: Rows) -> pa.Table:
    return pa.Table.from_pylist(samples, pa.schema({"number": pa.int64(), "word": pa.string()}))


def _csv(samples: Rows, delimiter: str = ",") -> bytes:
    out = io.BytesIO()
    pyarrow.csv.write_csv(_table(samples), out, pyarrow.csv.WriteOptions(delimiter=delimiter))
    return out.getvalue()


def _parquet(samples: Rows) -> bytes:
    out = io.BytesIO()
    pyarrow.parquet.write_table(_table(samples), out, row_group_size=2, write_page_checksum=True)
    return out.getvalue()


def _ipc(samples: Rows, new: Callable[..., Any]) -> bytes:
    out = io.BytesIO()
    table = _table(samples)
    with new(out, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    return out.getvalue()


def npy(array: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def _npz(samples: Rows) -> bytes:
    out = io.BytesIO()
    numbers = np.array([sample["number"] for sample in samples], np.int64)
    np.savez(out, number=numbers, word=np.array([sample["word"] for sample in samples], "U20"))
    return out.getvalue()


def tar(members: list[tuple[str, bytes]]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def _samples_tar(samples: Rows) -> bytes:
    pairs = [
        ((f"{i:04d}.number.cls", b"%d" % s["number"]), (f"{i:04d}.word.txt", s["word"].encode()))
        for i, s in enumerate(samples)
    ]
    return tar([member for pair in pairs for member in pair])


FORMS: dict[str, Callable[[Rows], bytes]] = {
    "jsonl": _lines,
    "ndjson": _lines,
    "json": _lines,
    "csv": _csv,
    "tsv": lambda samples: _csv(samples, "\t"),
    "parquet": _parquet,
    "arrow": lambda samples: _ipc(samples, pyarrow.ipc.new_file),
    "feather": lambda samples: _ipc(samples, pyarrow.ipc.new_file),
    "ipc": lambda samples: _ipc(samples, pyarrow.ipc.new_stream),
    "npy": lambda samples: npy(np.array([sample["number"] for sample in samples], np.int64)),
    "npz": _npz,
    "txt": lambda samples: b"".join(sample["word"].encode() + b"\n" for sample in samples),
    "tar": _samples_tar,
}
COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "": lambda data: data,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor(write_checksum=True).compress,
}
PLAIN_TEXT = {"jsonl", "ndjson", "json", "csv", "tsv", "txt"}  # what a cut at the end of a line leaves whole


def expected(form: str, samples: Rows) -> list[Any]:
    """What reading them gives, as ``plain`` tells it."""
    if form == "npy":
        return [sample["number"] for sample in samples]
    if form == "txt":
        return [sample["word"] for sample in samples]
    if form == "tar":
        return [
            {"__key__": f"{i:04d}", "number.cls": s["number"], "word.txt": s["word"]} for i, s in enumerate(samples)
        ]
    return samples


def plain(read: Columns | list[Any]) -> list[Any]:
    """The samples, with Python's own numbers in the place of numpy's."""
    return [_plain(sample) for sample in (read.rows() if isinstance(read, Columns) else read)]


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value
