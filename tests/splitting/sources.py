"""Big files, small ones: made of records, in any form, and read back with nothing of Stoker's."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import tarfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

COMPRESS = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda data: zstandard.ZstdCompressor().compress(data),
}
UNCOMPRESS = {
    "": bytes,
    ".gz": gzip.decompress,
    ".bz2": bz2.decompress,
    ".xz": lzma.decompress,
    ".zst": lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
}


def compression(path: Path) -> str:
    return path.suffix if path.suffix in COMPRESS else ""


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(COMPRESS[compression(path)](content))
    return path


def content(path: Path) -> bytes:
    return UNCOMPRESS[compression(path)](path.read_bytes())


def csv_content(rows: list[list[str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def csv_rows(data: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode(), newline="")))


def tar_content(members: list[tuple[str, bytes]], kind: int = tarfile.PAX_FORMAT) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=kind) as tar:
        for name, held in members:
            info = tarfile.TarInfo(name)
            info.size = len(held)
            tar.addfile(info, io.BytesIO(held))
    return data.getvalue()


def tar_members(data: bytes) -> list[tuple[str, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return [(info.name, tar.extractfile(info).read()) for info in tar]


def example(path: Path, n: int = 300) -> Path:
    """A file of ``n`` records of different lengths, of the form that its name says."""
    form = path.name.partition(".")[2].partition(".")[0]
    words = [f"{k} " * (k * 7 % 23 + 1) for k in range(n)]
    if form == "parquet":
        pq.write_table(pa.table({"k": range(n), "word": words}), path, row_group_size=70, compression="zstd")
        return path
    if form == "npy":
        data = io.BytesIO()
        np.save(data, np.arange(n * 6, dtype=np.int16).reshape(n, 2, 3))
        return write(path, data.getvalue())
    if form in ("csv", "tsv"):
        return write(path, csv_content([["k", "word"], *([str(k), f"{w}\n{w}"] for k, w in enumerate(words))]))
    if form == "tar":
        members = [(f"{k:04d}.{end}", w.encode()) for k, w in enumerate(words) for end in ("txt", "cls")]
        return write(path, tar_content(members))
    return write(path, b"".join(b'{"word": "%s"}\n' % w.encode() for w in words))
