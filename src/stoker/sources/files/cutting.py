"""Cutting: which files are cut into parts, and where.

| form | is cut | by |
|---|---|---|
| JSON lines, text | at bytes; a line belongs to the part in which it begins | arithmetic |
| Parquet | between row groups, and within large ones | the file's footer |
| Arrow | between record batches, and within large ones | its footer, or the headers of a stream |
| ``.npy`` | between rows | its header |
| CSV, TSV | between records | the quotes in all of the file |
| all else, and whatever is compressed or read with ``read=`` | not at all | |
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from stoker.sources.files.arrays import cut_npy
from stoker.sources.files.listing import Listing
from stoker.sources.files.opening import ending, shown
from stoker.sources.files.parts import DELIMITED, LINES, CannotCut, Cut, Limits, cut_bytes
from stoker.sources.files.ranges import gives_ranges, is_on_web
from stoker.sources.files.record_batches import cut_arrow
from stoker.sources.files.row_groups import cut_parquet

_CUTTERS: dict[str, Callable[[str, int, Limits, int], Cut]] = {
    "parquet": cut_parquet,
    "arrow": cut_arrow,
    "feather": cut_arrow,
    "ipc": cut_arrow,
    "npy": cut_npy,
}
_SPLITTABLE = frozenset({"txt", "jsonl", "ndjson", "csv", "tsv", "npy", "tar", "parquet"})  # what ``stoker split`` cuts
_EXPANDED = 4  # times as large as it is stored is a compressed file taken to be
_CACHES = ("simplecache", "filecache", "blockcache")  # of fsspec: through them, any byte of a file can be read


@dataclass(frozen=True)
class Cutting:
    """How files are to be cut.

    Attributes:
        limits: How large parts are.
        own_read: They are read with a function of the user's, which takes a whole file.
        multiple: Parts of tables but the last of each have a multiple of so many rows, and lines are not cut: so that
            batches of that many, which do not cross the borders of files, are full all the same.
    """

    limits: Limits
    own_read: bool = False
    multiple: int = 1

    def large_files(self, listing: Listing) -> list[int]:
        """The numbers of those that are not one part simply because they are small."""
        found: list[int] = np.flatnonzero(listing.sizes > self.limits.whole).tolist()
        return found

    def _why_whole(self, path: str) -> str:
        form, compression = ending(path)
        if self.own_read:
            return "read= gets a whole file"
        if compression:
            return f"a {compression} stream can only be read from its beginning"
        if form not in LINES | DELIMITED and form not in _CUTTERS:
            return f".{form} is read as a whole"
        if "::" in path and not path.startswith(_CACHES):
            return "a file in an archive can only be read from its beginning"
        if form in DELIMITED and is_on_web(path):
            return f".{form} on a web server is read as a whole"
        if form in LINES | DELIMITED and self.multiple > 1:
            return "with across_chunks=False, lines are read file by file"
        return ""

    def by_name(self, path: str, size: int) -> Cut | str | None:
        """How a file is cut, or why it is not. None: somebody must look into it."""
        if why := self._why_whole(path):
            return why
        return cut_bytes(size, self.limits) if ending(path)[0] in LINES and not is_on_web(path) else None

    def by_contents(self, path: str, size: int) -> Cut:
        """Of a table, whose metadata is read for this, or of a file on a server that may not give parts of it.

        Raises:
            CannotCut: It can only be read as a whole.
        """
        if not gives_ranges(path):
            raise CannotCut("its server gives whole files only")
        if ending(path)[0] in LINES:
            return cut_bytes(size, self.limits)
        cut = _CUTTERS[ending(path)[0]](path, size, self.limits, self.multiple)
        if not len(cut.begins):
            raise CannotCut("it has no rows")
        return cut

    def warning(self, path: str, size: int, why: str) -> str:
        """For the log, of a file that is too large to be read as a whole without a word; else empty."""
        if size * (_EXPANDED if ending(path)[1] else 1) < self.limits.large:
            return ""
        crossing = "pass across_chunks=True, or " if self.multiple > 1 else ""
        told = f"{shown(path)} has {size:,} bytes and is read as a whole, as {why}"
        return f"{told}: {crossing}{remedy(path, self.own_read)}"


def remedy(path: str, own_read: bool) -> str:
    """What to do about a file that cannot be cut and is too large."""
    form, compression = ending(path)
    if own_read:
        return "give read= smaller files, or leave it out if Stoker knows the form"
    if form == "npy" and not compression:
        return "save it with np.save(path, np.ascontiguousarray(array))"
    if form in _SPLITTABLE and not (form == "parquet" and compression):
        return f"cut it once with: stoker split {shlex.quote(shown(path))} FOLDER --size 8MB"
    return "store it in smaller files" + (", or without compression" if compression else "")


@dataclass(frozen=True)
class Survey:
    """What a worker does to find out how large tables are cut."""

    cutting: Cutting

    def __call__(self, files: list[tuple[str, int]]) -> list[Cut | str]:
        """The cut of each file, or why there is none. One that cannot be read is a part whose reading says so."""
        return [self._survey(path, size) for path, size in files]

    def _survey(self, path: str, size: int) -> Cut | str:
        try:
            return self.cutting.by_contents(path, size)
        except CannotCut as error:
            return str(error)
        except ImportError:
            raise
        except Exception:
            return UNREADABLE


_NONE = np.zeros(1, np.int64)
UNREADABLE = Cut(_NONE, _NONE, _NONE, _NONE - 1, _NONE)
