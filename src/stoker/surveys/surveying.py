"""Surveying: into which parts the files of a listing are cut. Workers look into large tables."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import numpy as np

from stoker.sources.files.opening import ending
from stoker.sources.files.selection import Selection
from stoker.surveys.worker_map import Crew, WorkerMap

if TYPE_CHECKING:
    from stoker.sources.files.cutting import Cutting
    from stoker.sources.files.listing import Listing
    from stoker.sources.files.parts import Cut, Parts
    from stoker.surveys.delimited_survey import DelimitedSurvey

log = logging.getLogger("stoker")


class Surveying:
    """Finds the parts of files.

    Args:
        own_read: Whether a function of the user's reads them.
        multiple: As ``Cutting`` has it.
        selection: Which columns are wanted, and of which dtypes.
        crew: Who looks into them.
    """

    def __init__(self, own_read: bool, multiple: int, selection: Selection, crew: Crew) -> None:
        self._own_read, self._multiple, self._selection, self._crew = own_read, multiple, selection, crew
        self._tables: WorkerMap[Any] | None = None
        self._delimited: DelimitedSurvey | None = None

    def parts(self, listing: Listing) -> Parts:
        """The parts of the files, in their order. Those that are large and cannot be cut are logged."""
        from stoker.sources.files import parts  # not before it is needed, as it loads a library
        from stoker.sources.files.cutting import Cutting

        cutting = Cutting(parts.LIMITS, self._own_read, self._multiple)
        found: dict[int, Cut | str] = {}
        tables: dict[int, tuple[str, int]] = {}
        delimited: dict[int, tuple[str, int]] = {}
        for file in cutting.large_files(listing):
            path, size = listing[file], int(listing.sizes[file])
            cut = cutting.by_name(path, size)
            if cut is not None:
                found[file] = cut
            else:
                (delimited if ending(path)[0] in parts.DELIMITED else tables)[file] = path, size
        key = listing.fingerprint() if tables or delimited else ""
        found |= self._of_tables(key, tables, cutting) | self._of_delimited(key, delimited, cutting)
        _warn(cutting, listing, {file: cut for file, cut in found.items() if isinstance(cut, str)})
        return parts.parts_of(listing, {file: cut for file, cut in sorted(found.items()) if not isinstance(cut, str)})

    def close(self) -> None:
        for survey in (self._tables, self._delimited):
            if survey is not None:
                survey.close()

    def _of_tables(self, key: str, files: dict[int, tuple[str, int]], cutting: Cutting) -> dict[int, Cut | str]:
        from stoker.sources.files.cutting import Survey

        self._tables = self._tables or WorkerMap(Survey(cutting), 1, self._crew)
        results = self._tables.results(key, list(files.values()).__getitem__, len(files), keep=_copied)
        return dict(zip(files, (cut for result in results for cut in result), strict=True))

    def _of_delimited(self, key: str, files: dict[int, tuple[str, int]], cutting: Cutting) -> dict[int, Cut | str]:
        if not files:
            return {}
        from stoker.surveys.delimited_survey import DelimitedSurvey

        self._delimited = self._delimited or DelimitedSurvey(cutting.limits.part, self._selection, self._crew)
        return self._delimited.cuts(key, files)


def _copied(found: list[Any]) -> list[Any]:
    """The arrays of a cut, out of the memory of the worker that has made it."""
    return [one if isinstance(one, str) else type(one)(*map(_own, one)) for one in found]


def _own(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


def _warn(cutting: Cutting, listing: Listing, whole: dict[int, str]) -> None:
    for file, why in sorted(whole.items()):
        if words := cutting.warning(listing[file], int(listing.sizes[file]), why):
            log.warning("%s", words)
