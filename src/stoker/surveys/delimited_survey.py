"""Where large files of CSV are cut, and of which types their columns are: found out by workers, in up to three passes.

spans of bytes ── quotes ──> where records begin ── parts ── types of each ──> types of the file ── tried, if need be
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from stoker.sources.files.cutting import UNREADABLE
from stoker.sources.files.delimited import Inference, Scan, Span, agreed_types, as_text, cut_records, scanned
from stoker.sources.files.parts import CannotCut, Cut, Part
from stoker.sources.files.selection import Selection
from stoker.surveys.worker_map import Crew, WorkerMap

_TOGETHER = 8  # spans or parts that a worker gets in one go


@dataclass(frozen=True)
class _ScanSpans:
    def __call__(self, spans: list[Span]) -> list[Scan | None]:
        """None: it cannot be read."""
        return [self._scanned(span) for span in spans]

    def _scanned(self, span: Span) -> Scan | None:
        try:
            return scanned(span)
        except (ImportError, MemoryError):
            raise
        except Exception:
            return None


@dataclass(frozen=True)
class _InferTypes:
    inference: Inference

    def __call__(self, parts: list[Part]) -> list[tuple[bytes, int]]:
        return [self.inference.schema(part) for part in parts]


class _Trial(NamedTuple):
    """Columns of a part that may be of the types that it has."""

    part: Part
    columns: list[str]


@dataclass(frozen=True)
class _TryTypes:
    inference: Inference

    def __call__(self, trials: list[_Trial]) -> list[list[str]]:
        """The columns that are not."""
        return [[name for name in columns if not self.inference.fits(part, [name])] for part, columns in trials]


class DelimitedSurvey:
    """Surveys large files of CSV.

    Args:
        part_bytes: How large a part is.
        selection: Which columns are wanted, and which dtypes are known.
        crew: Who reads them.
    """

    def __init__(self, part_bytes: int, selection: Selection, crew: Crew) -> None:
        self._part_bytes = part_bytes
        inference = Inference(selection)
        self._infers = inference.is_needed
        self._scan, self._infer, self._try = (
            WorkerMap[list[Any]](work, _TOGETHER, crew)
            for work in (_ScanSpans(), _InferTypes(inference), _TryTypes(inference))
        )

    def cuts(self, key: str, files: dict[int, tuple[str, int]]) -> dict[int, Cut | str]:
        """How each file is cut, or why it is not. ``key``: of the files, for whoever is interrupted."""
        spans = [span for path, size in files.values() for span in self._spans(path, size)]
        scans = iter(_all(self._scan, key, spans))
        found = {file: self._cut(path, size, scans) for file, (path, size) in files.items()}
        cuts = {file: cut for file, cut in found.items() if isinstance(cut, Cut) and cut.header}
        if self._infers:
            cuts = self._typed(key, files, cuts)
        return found | cuts

    def close(self) -> None:
        for one in (self._scan, self._infer, self._try):
            one.close()

    def _spans(self, path: str, size: int) -> list[Span]:
        step = self._part_bytes
        return [Span(path, begin, min(begin + step, size), size) for begin in range(0, size, step)]

    def _cut(self, path: str, size: int, scans: Iterator[Scan | None]) -> Cut | str:
        own = [scan for scan, _ in zip(scans, self._spans(path, size), strict=False)]
        known = [scan for scan in own if scan is not None]
        if len(known) < len(own):
            return UNREADABLE
        try:
            return cut_records(known, size)
        except CannotCut as error:
            return str(error)

    def _typed(self, key: str, files: dict[int, tuple[str, int]], cuts: dict[int, Cut]) -> dict[int, Cut]:
        parts = [part for file, cut in cuts.items() for part in _parts(*files[file], cut)]
        told = iter(_all(self._infer, key, parts))
        uncertain: dict[int, list[str]] = {}
        typed = {}
        for file, cut in cuts.items():
            own = [next(told) for _ in cut.begins]
            schema, uncertain[file] = agreed_types([schema for schema, _ in own])
            typed[file] = cut._replace(schema=schema, rows=np.array([rows for _, rows in own]))
        return self._tried(key, files, typed, uncertain)

    def _tried(
        self, key: str, files: dict[int, tuple[str, int]], cuts: dict[int, Cut], uncertain: dict[int, list[str]]
    ) -> dict[int, Cut]:
        doubtful = [file for file in cuts if uncertain[file]]
        trials = [_Trial(part, uncertain[file]) for file in doubtful for part in _parts(*files[file], cuts[file])]
        failed = iter(_all(self._try, key, trials))
        for file in doubtful:
            names = set(chain.from_iterable(next(failed) for _ in cuts[file].begins))
            cuts[file] = cuts[file]._replace(schema=as_text(cuts[file].schema, names))
        return cuts


def _parts(path: str, size: int, cut: Cut) -> list[Part]:
    bounds = enumerate(zip(cut.begins.tolist(), cut.ends.tolist(), strict=True))
    return [Part(nth, path, begin, end, size, 0, cut.header, cut.schema) for nth, (begin, end) in bounds]


def _all(work: WorkerMap[list[Any]], key: str, items: list[Any]) -> list[Any]:
    return list(chain.from_iterable(work.results(key, items.__getitem__, len(items), keep=list)))
