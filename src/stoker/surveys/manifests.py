"""Manifests: what ``stoker split`` has written down of the files it made, so that nobody has to count their samples."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from stoker.plan.permutation import Positions
from stoker.sources.files.listing import Listing
from stoker.sources.files.opening import ending, is_url
from stoker.sources.files.parts import Parts
from stoker.splitting import manifest
from stoker.splitting.manifest import Chunk

_FORMS = frozenset({"txt", "jsonl", "ndjson", "csv", "tsv", "npy", "parquet"})  # whose records are samples


def told_counts(parts: Parts, *, own_read: bool) -> Positions:
    """The samples of each file as far as its own metadata, where that was read, or a manifest tells; -1: unknown."""
    counts = np.zeros(len(parts.listing), np.int64)
    np.add.at(counts, parts.files, parts.rows)
    counts[parts.files[parts.rows < 0]] = -1
    if not own_read:
        _fill_from_manifests(counts, parts.listing)
    return counts


def _fill_from_manifests(counts: Positions, listing: Listing) -> None:
    """Where name and size agree with a manifest that lies beside the file."""
    known: dict[str, dict[str, Chunk]] = {}
    for file in np.flatnonzero(counts < 0).tolist():
        path = listing[file]
        if is_url(path):
            continue
        folder, name = os.path.split(path)
        if folder not in known:
            known[folder] = _chunks(folder)
        chunk = known[folder].get(name)
        if chunk is not None and ending(path)[0] in _FORMS and chunk.stored == listing.sizes[file]:
            counts[file] = chunk.records


def _chunks(folder: str) -> dict[str, Chunk]:
    """By their names. Of a folder that has no manifest, or one that cannot be read, none: its files are counted."""
    try:
        found = manifest.read(Path(folder))
    except (ValueError, OSError):
        return {}
    return {} if found is None else {chunk.name: chunk for chunk in found.chunks}
