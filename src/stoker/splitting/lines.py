"""Text: a line is a record, and in CSV a line or several, as a quoted field may hold newlines."""

from __future__ import annotations

from collections.abc import Iterator

from stoker.splitting.content import Stream
from stoker.splitting.cutter import Record, RecordCutter
from stoker.splitting.limit import Limit

_BOM = b"\xef\xbb\xbf"
_LONGEST_QUOTED = 256 << 20  # bytes; beyond it is a quote that nobody closed, and not to be held in memory


def text_cutter(stream: Stream, limit: Limit, place: int) -> RecordCutter:
    """Each line counts, also an empty one."""
    stream.go_to(place)
    return RecordCutter(stream, (Record(line) for line in iter(stream.line, b"")), limit)


def json_cutter(stream: Stream, limit: Limit, place: int) -> RecordCutter:
    """Empty lines are kept, and not counted."""
    stream.go_to(place)
    return RecordCutter(stream, (_record(line) for line in iter(stream.line, b"")), limit)


def csv_cutter(stream: Stream, limit: Limit, place: int, delimiter: bytes) -> RecordCutter:
    """The first record is the header of each chunk."""
    head = _row(stream, delimiter)
    stream.go_to(max(place, stream.place))
    return RecordCutter(stream, _rows(stream, delimiter), limit, head=head)


def _record(data: bytes) -> Record:
    return Record(data, 0 if data.isspace() else 1)


def _rows(stream: Stream, delimiter: bytes) -> Iterator[Record]:
    while row := _row(stream, delimiter):
        yield _record(row)


def _row(stream: Stream, delimiter: bytes) -> bytes:
    line = stream.line()
    if b'"' not in line:
        return line
    lines, nbytes = [line], len(line)
    is_open = _is_open(line.removeprefix(_BOM), delimiter, False)
    while is_open and (line := stream.line()):
        lines.append(line)
        nbytes += len(line)
        if nbytes > _LONGEST_QUOTED:
            raise stream.broken(f"a quote was opened and not closed for {nbytes:,} bytes. Is it CSV?")
        is_open = _is_open(line, delimiter, True)
    return b"".join(lines)


def _is_open(line: bytes, delimiter: bytes, was_open: bool) -> bool:
    """Whether a quoted field goes on behind this line. A quote opens a field only at the field's beginning."""
    at, is_open, opening = 0, was_open, delimiter + b'"'
    if not was_open:
        line = delimiter + line
    while True:
        at = line.find(b'"' if is_open else opening, at)
        if at < 0:
            return is_open
        if not is_open:
            at, is_open = at + len(opening), True
        elif line.startswith(b'""', at):  # a quote within the field
            at += 2
        else:
            at, is_open = at + 1, False
