"""Small chunk files, whose samples are numbered through all of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from stoker import Chunks, Loader


def needs_missing_vectors() -> None:
    """Skips a test with null lists of a fixed size in Parquet."""
    if int(pa.__version__.partition(".")[0]) < 26:
        pytest.skip("Arrow before 26 writes or reads no such lists")


def write_chunks(folder: Path, sizes: list[int]) -> list[Path]:
    """JSON lines: files of so many samples, each of which knows its number and its file."""
    folder.mkdir(exist_ok=True)
    files, number = [], 0
    for file, size in enumerate(sizes):
        lines = [json.dumps({"number": number + nth, "file": file}) for nth in range(size)]
        number += size
        files.append(folder / f"{file:05}.jsonl")
        files[-1].write_text("".join(line + "\n" for line in lines))
    return files


def numbers(batch: Any) -> list[int]:
    return batch["number"].tolist()  # type: ignore[no-any-return]


def epochs(loader: Loader, count: int) -> list[list[list[int]]]:
    """The numbers of each batch of each epoch."""
    return [[numbers(batch) for batch in loader] for _ in range(count)]


def load(folder: Path, batch_size: int, count: int = 2, **options: Any) -> list[list[list[int]]]:
    """Epochs of a loader of its own; options of Chunks and of the loader together."""
    given = {name: options.pop(name) for name in ("interleave", "across_chunks", "read") if name in options}
    with Loader(Chunks(folder, **{"interleave": 1} | given), batch_size, **options) as loader:
        return epochs(loader, count)


def flat(batches: list[list[int]]) -> list[int]:
    return [number for batch in batches for number in batch]


def cut(values: list[int], size: int) -> list[list[int]]:
    return [values[start : start + size] for start in range(0, len(values), size)]
