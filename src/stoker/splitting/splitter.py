"""From one big file to a folder of chunks: begun, or gone on with wherever it was stopped."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec

from stoker.splitting import folder, manifest
from stoker.splitting.content import BufferedContent
from stoker.splitting.cutter import Cutter
from stoker.splitting.limit import Limit
from stoker.splitting.lines import csv_cutter, json_cutter, text_cutter
from stoker.splitting.manifest import Chunk, Manifest
from stoker.splitting.npy import NpyCutter
from stoker.splitting.parquet import ParquetCutter
from stoker.splitting.sink import Sink, replacing
from stoker.splitting.source import Source, find
from stoker.splitting.tar import tar_cutter

_MOST_CHUNKS = 100_000  # beyond it, names of five digits would not sort

_SAVED_EACH = 1000  # the manifest is as long as the split: beyond, it is saved each thousandth of the chunks so far

_CUTTERS: dict[str, Callable[[BufferedContent, Limit, int], Cutter]] = {
    "txt": text_cutter,
    "jsonl": json_cutter,
    "ndjson": json_cutter,
    "csv": lambda stream, limit, offset: csv_cutter(stream, limit, offset, b","),
    "tsv": lambda stream, limit, offset: csv_cutter(stream, limit, offset, b"\t"),
    "npy": NpyCutter,
    "tar": tar_cutter,
}


OnProgress = Callable[[int, int | None], None]


def run(source: str | os.PathLike[str], path: Path, limit: Limit, on_progress: OnProgress | None) -> list[Path]:
    """Begins the split of ``source`` into the folder ``path``, or goes on with it, to the end."""
    found = find(source)
    folder.check(path)
    with folder.held(path):
        state = folder.resumed(path, manifest.begun(found, limit))
        if not state.finished:
            with closing(_cutter(found, limit, state.next, _teller(found, on_progress))) as cutter:
                state = _write_chunks(path, found, cutter, state)
    return [path / chunk.name for chunk in state.chunks]


def _write_chunks(path: Path, source: Source, cutter: Cutter, state: Manifest) -> Manifest:
    while cutter.more() or not state.chunks:  # a source without records makes one chunk without records
        if len(state.chunks) == _MOST_CHUNKS:
            raise ValueError(f"{source.name} makes more than {_MOST_CHUNKS:,} chunks: make them larger")
        name = source.chunk_name(len(state.chunks))
        with replacing(path / name, source.mode) as file:
            sink = Sink(file, source.compression)
            written = cutter.write(sink)
            sink.finish()
        stored = (path / name).stat().st_size
        state = folder.with_chunk(state, Chunk(name, written.records, written.nbytes, stored), cutter.offset)
        if len(state.chunks) % max(1, len(state.chunks) // _SAVED_EACH) == 0:
            manifest.write(path, state)
    if find(source.path) != source:
        raise ValueError(f"{source.name} has changed while it was split: {manifest.remedy(path)}")
    state = msgspec.structs.replace(state, finished=True)
    manifest.write(path, state)
    return state


def _cutter(source: Source, limit: Limit, offset: int, on_read: Callable[[int], None]) -> Cutter:
    if source.form == "parquet":
        return ParquetCutter(source, limit, offset, on_read)
    stream = BufferedContent(source, on_read)
    try:
        return _CUTTERS[source.form](stream, limit, offset)
    except BaseException:
        stream.close()
        raise


def _teller(source: Source, on_progress: OnProgress | None) -> Callable[[int], None]:
    if on_progress is None:
        return lambda nbytes: None
    return lambda nbytes: on_progress(nbytes, source.size)
