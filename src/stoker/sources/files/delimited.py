"""CSV and TSV in parts: where records begin, though quoted fields may hold newlines, and of which types columns are.

Whether a newline ends a record depends on whether the quotes before it are even or odd, from the beginning of the file
on. So each span of bytes is scanned under both assumptions, by workers, and then it follows which one holds. That is
how pyarrow reads it, too, as long as each quote that opens a field stands at its beginning, and each that closes one at
its end; a file in which one does not is not cut.

pyarrow finds out the types of columns from all that is in a file. So they are found out for each part, and each is then
read with those that fit all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from stoker.sources.files.opening import ending, needed
from stoker.sources.files.parts import CannotCut, Cut, Part
from stoker.sources.files.ranges import read_range
from stoker.sources.files.selection import Selection

_QUOTE, _NEWLINE, _RETURN = ord('"'), ord("\n"), ord("\r")
_BOM = b"\xef\xbb\xbf"


class Span(NamedTuple):
    """Some bytes of a file of that size."""

    path: str
    begin: int
    end: int
    size: int


class Scan(NamedTuple):
    """What was found in a span, if no quoted field, or if one, goes on from before it.

    Attributes:
        quotes: How many there are.
        is_plain: Whether quotes stand at the borders of fields only; for each of the two cases.
        first: Where the first record begins, -1: none does; for each of the two.
        header: Where the second record of the file begins; -1: not in this span.
    """

    quotes: int
    is_plain: tuple[bool, bool]
    first: tuple[int, int]
    header: int


def scanned(span: Span) -> Scan:
    """Raises ``EOFError`` if the file is shorter than it was."""
    before, behind = int(span.begin > 0), int(span.end < span.size)
    data = read_range(span.path, span.begin - before, span.end + behind)
    if len(data) < span.end + behind - span.begin + before:
        raise EOFError(f"it ends before byte {span.end:,}, and had {span.size:,} when it was listed")
    if not before and data.startswith(_BOM):
        data = b"\n" * len(_BOM) + data[len(_BOM) :]
    around = np.frombuffer(b"\n" * (1 - before) + data + b"\n" * (1 - behind), np.uint8)
    inside = around[1:-1]
    quotes = np.flatnonzero(inside == _QUOTE)
    newlines = np.flatnonzero(inside[:-1] == _NEWLINE)
    is_odd = np.searchsorted(quotes, newlines) % 2 == 1
    begins = [newlines[~is_odd] + 1, newlines[is_odd] + 1]  # of records, in the two cases
    if around[0] == _NEWLINE:
        begins[0] = np.append(0, begins[0])
    first = tuple(span.begin + int(found[0]) if len(found) else -1 for found in begins)
    is_plain = _plain(around, quotes, delimiter(span.path))
    return Scan(len(quotes), is_plain, (first[0], first[1]), -1 if before else _header_end(inside, begins[0]))


def _plain(around: Any, quotes: Any, separator: str) -> tuple[bool, bool]:
    border = (ord(separator), _NEWLINE, _RETURN, _QUOTE)
    opens, closes = np.isin(around[quotes], border), np.isin(around[quotes + 2], border)
    return bool(opens[::2].all() and closes[1::2].all()), bool(closes[::2].all() and opens[1::2].all())


def _header_end(inside: Any, begins: Any) -> int:
    """Empty lines before it are none."""
    filled = np.flatnonzero((inside != _NEWLINE) & (inside != _RETURN))
    ends = begins[begins > filled[0]] if len(filled) else begins[:0]
    return int(ends[0]) if len(ends) else -1


def cut_records(scans: Sequence[Scan], size: int) -> Cut:
    """Where to cut a file of that size, out of the scans of all of its spans.

    Raises:
        CannotCut: It holds quotes that may mean something else, or its first record is very long.
    """
    begins, is_odd = [], 0
    for scan in scans:
        if not scan.is_plain[is_odd]:
            raise CannotCut("it has quotes within fields, so that it is not certain where records begin")
        if scan.first[is_odd] >= 0:
            begins.append(scan.first[is_odd])
        is_odd = (is_odd + scan.quotes) % 2
    if is_odd:
        raise CannotCut("a quote was opened and not closed")
    if scans[0].header < 0:
        raise CannotCut("its first record is longer than a part")
    first = np.array(begins)
    ends = np.append(first[1:], size)
    rows = np.full(len(first), -1)
    return Cut(first, ends, ends - first, rows, np.arange(len(first)), header=scans[0].header)


@dataclass(frozen=True)
class Inference:
    """Finds out the types of columns in parts of CSV. ``selection``: which columns, and the dtypes that are known."""

    selection: Selection

    @property
    def is_needed(self) -> bool:
        """Whether there may be columns whose types are not known."""
        return self.selection.columns is None or bool(self._unknown(self.selection.columns))

    def schema(self, part: Part) -> tuple[bytes, int]:
        """The types that pyarrow finds, and the number of rows. Of a part that cannot be read: none, and -1."""
        try:
            table = read_delimited(part, self.selection, include=self._unknown)
        except ImportError:
            raise
        except Exception:
            return b"", -1  # whoever reads it says why
        return bytes(table.schema.serialize().to_pybytes()), int(table.num_rows)

    def fits(self, part: Part, names: Sequence[str]) -> bool:
        """Whether these columns of the part are of the types that it was given."""
        try:
            read_delimited(part, self.selection, include=lambda _: names)
        except Exception:
            return False
        return True

    def _unknown(self, names: Sequence[str]) -> list[str]:
        known = {name for name, dtype in self.selection.dtypes.items() if not dtype.is_object}
        return [name for name in names if name not in known]


def parse_csv(data: bytes, path: str, selection: Selection) -> Any:
    """A whole file as a table, with the names of columns in its first record."""
    return _parsed(data, path, _dtypes(selection), list(selection.columns or ()))


def read_delimited(part: Part, selection: Selection, include: Callable[[Sequence[str]], Sequence[str]] = list) -> Any:
    """The records of a part, as a table of those selected columns that ``include`` leaves."""
    arrow = needed("pyarrow", "reading CSV")
    if not part.end:
        raise ValueError("it could not be read when the epoch was planned")
    names = _parsed(read_range(part.path, 0, part.header), part.path).column_names
    types = dict(_types(arrow, part.schema)) | _dtypes(selection)
    wanted = list(include(selection.columns or names))
    begin = part.begin or part.header
    data = read_range(part.path, begin, part.end)
    if len(data) < part.end - begin:
        raise EOFError(f"it has {begin + len(data):,} bytes, and had {part.size:,} when it was listed")
    if not wanted or not data.strip(b"\r\n"):
        return arrow.schema([(name, types.get(name, arrow.null())) for name in wanted]).empty_table()
    return _parsed(data, part.path, types, wanted, names)


def _parsed(data: bytes, path: str, types: Any = None, wanted: Any = None, names: Any = None) -> Any:
    arrow, csv = needed("pyarrow", "reading CSV"), needed("pyarrow.csv", "reading CSV")
    try:
        return csv.read_csv(
            arrow.BufferReader(data),
            read_options=csv.ReadOptions(use_threads=False, column_names=names),  # no threads: errors name the row
            parse_options=csv.ParseOptions(delimiter=delimiter(path), newlines_in_values=True),
            convert_options=csv.ConvertOptions(column_types=types, include_columns=wanted),
        )
    except KeyError as error:
        raise ValueError(f"there is no such column: {error}") from None


def _dtypes(selection: Selection) -> dict[str, Any]:
    arrow = needed("pyarrow", "reading CSV")
    types = {name: dtype.arrow_type() for name, dtype in selection.dtypes.items() if not dtype.is_object}
    # Arrow does not read the shortest floats out of text: they are cast afterwards, as columns of other files are.
    return {name: arrow.float32() if kind == arrow.float16() else kind for name, kind in types.items()}


def delimiter(path: str) -> str:
    return "\t" if ending(path)[0] == "tsv" else ","


def _types(arrow: Any, schema: bytes) -> Iterator[tuple[str, Any]]:
    if schema:
        found = needed("pyarrow.ipc", "reading CSV").read_schema(arrow.py_buffer(schema))
        yield from zip(found.names, found.types, strict=True)


def agreed_types(schemas: Sequence[bytes]) -> tuple[bytes, list[str]]:
    """The types that columns have in all parts together; and of which columns that is to be tried before it is certain.

    A value can be of several types, and pyarrow takes the first, in an order of its own, that fits all values: so the
    types of parts tell that of the file, or that it is one of two, the second being text.
    """
    arrow = needed("pyarrow", "reading CSV")
    found: dict[str, set[Any]] = {}
    for schema in schemas:
        for name, kind in _types(arrow, schema):
            found.setdefault(name, set()).add(kind)
    agreed = {name: _agreed(arrow, kinds - {arrow.null()}) for name, kinds in found.items()}
    fields = [(name, kind) for name, (kind, _) in agreed.items()]
    uncertain = [name for name, (_, is_certain) in agreed.items() if not is_certain]
    return bytes(arrow.schema(fields).serialize().to_pybytes()), uncertain


def _agreed(arrow: Any, kinds: set[Any]) -> tuple[Any, bool]:
    if len(kinds) < 2:
        return (*kinds, arrow.null())[0], True
    if arrow.binary() in kinds:
        return arrow.binary(), True
    if kinds == {arrow.int64(), arrow.float64()}:
        return arrow.float64(), True
    if kinds == {arrow.int64(), arrow.bool_()}:
        return arrow.bool_(), False  # of 0 and 1
    if kinds == {arrow.date32(), arrow.timestamp("s")}:
        return arrow.timestamp("s"), True
    for zone in (None, "UTC"):
        times = {arrow.date32(), arrow.timestamp("s"), arrow.timestamp("s", zone), arrow.timestamp("ns", zone)}
        if kinds <= times and arrow.timestamp("ns", zone) in kinds:
            return arrow.timestamp("ns", zone), False  # of years from 1678 to 2262
    return arrow.string(), True


def as_text(schema: bytes, names: Collection[str]) -> bytes:
    """With these columns as text."""
    arrow = needed("pyarrow", "reading CSV")
    fields = [(name, arrow.string() if name in names else kind) for name, kind in _types(arrow, schema)]
    return bytes(arrow.schema(fields).serialize().to_pybytes())
