"""``split`` as it is called; what it needs is imported when it is, so that ``import stoker`` does not wait for it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path


def split(
    source: str | os.PathLike[str],
    into: str | os.PathLike[str],
    *,
    size: int | str | None = None,
    count: int | None = None,
    on_progress: Callable[[int, int | None], None] | None = None,
) -> list[Path]:
    """Cuts a big file into chunk files, between its records.

    A chunk has the form and the compression of the source, and ends before the record that would make it larger than
    ``size`` or ``count``. Stopped or killed at any moment, the same call goes on behind the last finished chunk.

    Args:
        source: A path or a URL of fsspec's. Lines (.txt .jsonl .ndjson .csv .tsv), rows (.npy .parquet) or the samples
            of a WebDataset (.tar); all but .parquet also with .gz, .bz2, .xz or .zst behind it.
        into: The folder for the chunks, made if it is missing.
        size: The most bytes of a chunk, before compression: a number, or "64MB", "1.5 GiB". A record that is longer
            makes a chunk by itself.
        count: The most records of a chunk. Either this or ``size`` is to be given.
        on_progress: Is told the bytes of the source that are read, and how many there are, if that is known.

    Returns:
        The chunks, in order.

    Raises:
        ValueError, TypeError: An argument cannot be used, or ``into`` holds another split.
        ChunkError: The source is damaged. The chunks before the damage are kept.

    Example:
        >>> import pathlib, stoker, tempfile
        >>> with tempfile.TemporaryDirectory() as name:
        ...     big = pathlib.Path(name, "big.txt")
        ...     _ = big.write_text("one\\ntwo\\nthree\\n")
        ...     [(chunk.name, chunk.read_text()) for chunk in stoker.split(big, big.parent / "chunks", count=2)]
        [('big-00000.txt', 'one\\ntwo\\n'), ('big-00001.txt', 'three\\n')]
    """
    from stoker.splitting.limit import limit_of
    from stoker.splitting.splitter import run

    return run(source, Path(into), limit_of(size, count), on_progress)
