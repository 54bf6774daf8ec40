"""Parts: the pieces in which files are read, mixed, dealt out to shards and resumed.

A file of at most ``Limits.whole`` bytes is one part, and so is one that cannot be cut. A larger one has parts of about
``Limits.part`` bytes each. Where a file holds lines, these are bytes of it, and where it holds a table, rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import xxhash

from stoker.sources.files.listing import Int64s, Listing
from stoker.sources.files.open_files import OPEN_BYTES
from stoker.sources.files.opening import ending, shown

LINES = frozenset({"jsonl", "ndjson", "json", "txt"})
DELIMITED = frozenset({"csv", "tsv"})
TABLES = frozenset({"parquet", "arrow", "feather", "ipc", "npy"})


@dataclass(frozen=True)
class Limits:
    """How large parts are.

    Attributes:
        part: Bytes of a part: four mix in a group, of which two workers and six slots hold one each.
        whole: A file of at most so many bytes is one part.
        large: A file that cannot be cut is warned of from this size on.
    """

    part: int = 4 << 20
    whole: int = 8 << 20
    large: int = 256 << 20


LIMITS = Limits()


class CannotCut(Exception):
    """The file is sound, and can only be read as a whole; says why."""


class Part(NamedTuple):
    """A part of a file, as a worker gets it.

    Attributes:
        number: Among the parts of all files.
        path: Of the file.
        begin: The first byte or row.
        end: The one behind the last; None: the part is the whole file.
        size: Bytes of the file when it was listed, -1 where that is not known.
        stamp: Changes with the file; see ``Listing``.
        header: Of CSV: the bytes of the file that its first record takes.
        schema: Of CSV: the types of columns, as pyarrow writes them down; empty: whatever each part suggests.
    """

    number: int
    path: str
    begin: int = 0
    end: int | None = None
    size: int = -1
    stamp: int = 0
    header: int = 0
    schema: bytes = b""

    @property
    def span(self) -> str:
        """In words; empty for a whole file."""
        if self.end is None:
            return ""
        unit = "rows" if ending(self.path)[0] in TABLES else "bytes"
        return f"{unit} {self.begin:,} to {self.end:,}"

    def __str__(self) -> str:
        """As errors and logs may show it."""
        return f"{shown(self.path)} ({self.span})" if self.span else shown(self.path)


class Cut(NamedTuple):
    """How one file is cut: an array for each attribute of its parts.

    Attributes:
        begins: First bytes or rows.
        ends: Those behind the last.
        sizes: Bytes, decoded as far as that can be told.
        rows: Samples, -1 where that is not known.
        strands: Equal for neighbours that can only be read quickly one after the other.
        held: Bytes of memory that a worker holds as long as it is within a strand.
        header: As in ``Part``.
        schema: As in ``Part``.
    """

    begins: Int64s
    ends: Int64s
    sizes: Int64s
    rows: Int64s
    strands: Int64s
    held: int = 0
    header: int = 0
    schema: bytes = b""


def cut_bytes(size: int, limits: Limits) -> Cut:
    """A file of that many bytes, whose records can begin anywhere."""
    begins = np.arange(0, size, limits.part)
    ends = np.minimum(begins + limits.part, size)
    return Cut(begins, ends, ends - begins, np.full(len(begins), -1), np.arange(len(begins)))


def cut_rows(rows: int, row_bytes: float, limits: Limits, multiple: int = 1) -> Cut:
    """A table that can be read from any row on. ``multiple``: parts but the last have a multiple of so many rows."""
    step = max(1, int(limits.part / max(row_bytes, 1e-9)) // multiple) * multiple
    begins = np.arange(0, rows, step)
    ends = np.minimum(begins + step, rows)
    counts = ends - begins
    # A full part counts as just enough for a group by itself, as parts that are told by bytes do.
    sizes = np.where(counts == step, max(limits.part, int(step * row_bytes)), (counts * row_bytes).astype(np.int64))
    return Cut(begins, ends, sizes, counts, np.arange(len(begins)))


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts of all files, in the order of the files: an array for each attribute, with -1 where it is not known.

    Attributes:
        listing: The files.
        cuts: Those of them that are cut.
        files: The file of each part.
        begins: First bytes or rows.
        ends: Those behind the last; -1: the part is the whole file.
        sizes: Bytes.
        rows: Samples.
        strands: See ``plan.groups.Groups``.
    """

    listing: Listing
    cuts: Mapping[int, Cut]
    files: Int64s
    begins: Int64s
    ends: Int64s
    sizes: Int64s
    rows: Int64s
    strands: Int64s

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, number: int) -> Part:
        file, end = int(self.files[number]), int(self.ends[number])
        path, size, stamp = self.listing[file], int(self.listing.sizes[file]), int(self.listing.stamps[file])
        if end < 0:
            return Part(number, path, size=size, stamp=stamp)
        cut = self.cuts[file]
        return Part(number, path, int(self.begins[number]), end, size, stamp, cut.header, cut.schema)

    def abreast(self, interleave: int) -> int:
        """How many strands a worker can read side by side, at most ``interleave``."""
        held = max((cut.held for cut in self.cuts.values()), default=0)
        return max(1, min(interleave, OPEN_BYTES // held)) if held else interleave

    def fingerprint(self) -> str:
        """A hexadecimal number of how files are cut; empty where none is."""
        if not self.cuts:
            return ""
        digest = xxhash.xxh3_128()
        for values in (self.files, self.begins, self.ends, self.sizes, self.strands):
            digest.update(np.ascontiguousarray(values).tobytes())
        digest.update(max(cut.held for cut in self.cuts.values()).to_bytes(8, "little"))
        return digest.hexdigest()


def parts_of(listing: Listing, cuts: Mapping[int, Cut]) -> Parts:
    """The parts of files of which these, by their numbers, are cut."""
    count = len(listing)
    if not cuts:
        numbers, unknown = np.arange(count), np.broadcast_to(np.int64(-1), count)
        return Parts(listing, {}, numbers, unknown, unknown, listing.sizes, unknown, numbers)
    counts = np.ones(count, np.int64)
    for file, cut in cuts.items():
        counts[file] = len(cut.begins)
    files = np.repeat(np.arange(count), counts)
    columns = {name: np.full(len(files), -1) for name in ("begins", "ends", "sizes", "rows")}
    columns["sizes"] = listing.sizes[files]
    is_first = np.ones(len(files), bool)  # of its strand
    firsts = np.cumsum(counts) - counts
    for file, cut in cuts.items():
        at = slice(int(firsts[file]), int(firsts[file] + counts[file]))
        for name, values in columns.items():
            values[at] = getattr(cut, name)
        is_first[at] = np.diff(cut.strands, prepend=-1) != 0
    return Parts(listing, cuts, files, strands=np.cumsum(is_first) - 1, **columns)


def joined_cuts(cuts: list[Cut]) -> Cut:
    """Of pieces of one file, one behind the other; their strands do not touch."""
    firsts = np.cumsum([0, *(int(cut.strands[-1]) + 1 if len(cut.strands) else 0 for cut in cuts[:-1])])
    strands = [cut.strands + first for cut, first in zip(cuts, firsts, strict=True)]
    begins, ends, sizes, rows = (np.concatenate([cut[at] for cut in cuts]) for at in range(4))
    return Cut(begins, ends, sizes, rows, np.concatenate(strands))
