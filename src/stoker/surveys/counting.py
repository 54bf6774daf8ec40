"""Counting: how many samples each part has, by metadata where there is some, else found out by workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from stoker.plan.permutation import Positions
from stoker.sources.chunks import Chunks, CountSamples
from stoker.surveys.worker_map import Crew, WorkerMap

if TYPE_CHECKING:
    from stoker.sources.files.parts import Part, Parts

_TOGETHER = 64  # parts whose samples a worker counts in one go


class Counting:
    """Counts the samples of parts.

    Args:
        chunks: How to read them.
        leave_out: Those that cannot be read have none.
        crew: Who reads them.
    """

    def __init__(self, chunks: Chunks, crew: Crew, *, leave_out: bool) -> None:
        self._own_read = chunks.read is not None
        self._map: WorkerMap[Any] = WorkerMap(CountSamples(chunks.read, leave_out), _TOGETHER, crew)

    def of_parts(self, parts: Parts) -> Positions:
        """The number of samples of each part."""
        told = self._told(parts)
        counts = np.where(parts.ends < 0, told[parts.files], parts.rows)
        unknown = np.flatnonzero(counts < 0).tolist()

        def item(number: int) -> Part:
            return parts[unknown[number]]

        key = parts.listing.fingerprint() + parts.fingerprint()
        found = self._map.results(key, item, len(unknown), keep=np.copy)
        counts[unknown] = np.concatenate([np.zeros(0, np.int64), *found])
        return counts

    def of_files(self, parts: Parts) -> Positions | None:
        """The number of samples of each file, if that can be told without reading any; else None."""
        told = self._told(parts)
        return told if (told >= 0).all() else None

    def close(self) -> None:
        self._map.close()

    def _told(self, parts: Parts) -> Positions:
        from stoker.surveys.manifests import told_counts  # not before it is needed

        return told_counts(parts, own_read=self._own_read)
