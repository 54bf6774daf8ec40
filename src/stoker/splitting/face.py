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
    ``size`` or ``count``. If it is stopped or killed, the same call continues after the last finished chunk.

    Args:
        source: A path, or a URL that fsspec knows, of lines (.txt .jsonl .ndjson .csv .tsv), rows (.npy .parquet) or
            the samples of a WebDataset (.tar); all but .parquet also compressed (.gz, .bz2, .xz or .zst).
        into: The folder for the chunks. It is made if it does not exist.
        size: The largest size of a chunk before compression: a number of bytes, or a string such as "64MB" or
            "1.5 GiB". A record that is larger becomes a chunk by itself.
        count: The largest number of records in a chunk. Pass either this or ``size``.
        on_progress: A function that is called with the bytes read so far, and with the size of the source or None.

    Returns:
        The paths of the chunks, in order.

    Raises:
        ValueError, TypeError: An argument is wrong, or ``into`` holds the chunks of another split.
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
