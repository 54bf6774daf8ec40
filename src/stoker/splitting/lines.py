"""Text: a line is a record, and in CSV a line or several, as a quoted field may hold newlines."""

from __future__ import annotations

from collections.abc import Iterator

from stoker.splitting.content import BufferedContent
from stoker.splitting.cutter import RecordCutter, SourceRecord
from stoker.splitting.limit import Limit

_BOM = b"\xef\xbb\xbf"
_LONGEST_QUOTED = 256 << 20  # bytes; beyond it is a quote that nobody closed, and not to be held in memory


def text_cutter(stream: BufferedContent, limit: Limit, offset: int) -> RecordCutter:
    """Each line counts, also an empty one."""
    stream.go_to(offset)
    return RecordCutter(stream, (SourceRecord(line) for line in iter(stream.line, b"")), limit)


def json_cutter(stream: BufferedContent, limit: Limit, offset: int) -> RecordCutter:
    """Empty lines are kept, and not counted."""
    stream.go_to(offset)
    return RecordCutter(stream, (_record(line) for line in iter(stream.line, b"")), limit)


def csv_cutter(stream: BufferedContent, limit: Limit, offset: int, delimiter: bytes) -> RecordCutter:
    """The first record is the header of each chunk."""
    head = _row(stream, delimiter)
    stream.go_to(max(offset, stream.offset))
    return RecordCutter(stream, _rows(stream, delimiter), limit, head=head)


def _record(data: bytes) -> SourceRecord:
    return SourceRecord(data, 0 if data.isspace() else 1)


def _rows(stream: BufferedContent, delimiter: bytes) -> Iterator[SourceRecord]:
    while row := _row(stream, delimiter):
        yield SourceRecord(row, 1 if row.strip(b"\r\n") else 0)  # one of spaces is a row, to readers of CSV


def _row(stream: BufferedContent, delimiter: bytes) -> bytes:
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
