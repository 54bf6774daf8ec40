"""Reading all samples of a file or a part of one, by its ending or by a function of the user; and counting them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from stoker.errors import ChunkError, add_note, message_of
from stoker.interrupts import is_from_outside
from stoker.sources.files.arrays import count_npy, count_npz, read_npy, read_npy_rows, read_npz
from stoker.sources.files.columns import Column, Columns, Pack, Samples, gathered
from stoker.sources.files.cutting import remedy
from stoker.sources.files.lines import (
    count_json,
    count_json_part,
    count_text,
    count_text_part,
    gather_json,
    gather_json_part,
    read_json,
    read_json_part,
    read_text,
    read_text_part,
)
from stoker.sources.files.open_files import OpenFiles
from stoker.sources.files.opening import COMPRESSIONS, ending, is_url, missing, shown, without_secrets
from stoker.sources.files.parts import Part
from stoker.sources.files.read_context import ReadContext
from stoker.sources.files.selection import Selection
from stoker.sources.files.tables import (
    count_arrow,
    count_parquet,
    read_arrow,
    read_arrow_rows,
    read_csv,
    read_csv_part,
    read_parquet,
    read_parquet_rows,
)
from stoker.sources.files.tars import count_tar, read_tar

Pieces = Iterator[list[Any]]
Read = Callable[[str], Any]
_ALL = Selection()
_PIECE = 256  # samples that a function of the user yields


class Gather(Protocol):
    """Reads pieces as columns where they make such."""

    def __call__(self, path: str, context: ReadContext, *, pack: Pack | None) -> Iterator[Samples]: ...


class GatherPart(Protocol):
    """The same, of a part."""

    def __call__(self, part: Part, context: ReadContext, *, pack: Pack | None) -> Iterator[Samples]: ...


@dataclass(frozen=True)
class _Form:
    """How files of one ending are read, and counted if that is quicker; whole, or a part of one.

    ``select``: reads what was selected only. ``gather``: makes columns while it reads.
    """

    read: Callable[[str, ReadContext], Samples | Pieces] | None = None
    count: Callable[[str, ReadContext], int] | None = None
    select: Callable[[str, ReadContext, Selection], Columns] | None = None
    gather: Gather | None = None
    read_part: Callable[[Part, ReadContext], Samples | Pieces] | None = None
    count_part: Callable[[Part, ReadContext], int] | None = None
    select_part: Callable[[Part, ReadContext, Selection, OpenFiles], Columns] | None = None
    gather_part: GatherPart | None = None


_JSON = _Form(
    read_json,
    count_json,
    gather=gather_json,
    read_part=read_json_part,
    count_part=count_json_part,
    gather_part=gather_json_part,
)
_ARROW = _Form(count=count_arrow, select=read_arrow, select_part=read_arrow_rows)
_CSV = _Form(select=read_csv, select_part=read_csv_part)
_FORMS = {
    "jsonl": _JSON,
    "ndjson": _JSON,
    "json": _JSON,
    "csv": _CSV,
    "tsv": _CSV,
    "parquet": _Form(count=count_parquet, select=read_parquet, select_part=read_parquet_rows),
    "arrow": _ARROW,
    "feather": _ARROW,
    "ipc": _ARROW,
    "npy": _Form(read_npy, count_npy, read_part=read_npy_rows),
    "npz": _Form(read_npz, count_npz),
    "txt": _Form(read_text, count_text, read_part=read_text_part, count_part=count_text_part),
    "tar": _Form(read_tar, count_tar),
}


def read_chunk(
    path: str,
    read: Read | None = None,
    *,
    gather: bool = False,
    pack: Pack | None = None,
    selection: Selection = _ALL,
) -> Samples:
    """All samples of a file.

    Args:
        path: Of this machine, or a URL that fsspec knows.
        read: A function of the path that gives or yields samples, or gives an array, or a dict of columns. Without
            it the ending of the path says what the file holds.
        gather: Samples become columns where they can.
        pack: Packs the strings of such columns up, piece by piece, while they are in the processor's caches.
        selection: Which columns, and of which dtypes.

    Raises:
        ChunkError: The file cannot be read to its end.
        FileNotFoundError: There is no such file.
    """
    form = _form(path) if read is None else _Form(_read_with(read))
    with _failures(path, own_read=read is not None) as context:
        if form.select is not None:
            return form.select(path, context, selection)
        if gather and form.gather is not None and not selection:
            with _ended(form.gather(path, context, pack=pack)) as blocks:
                return gathered(blocks, pack=pack)
        assert form.read is not None
        with _ended(form.read(path, context)) as samples:
            return _selected(samples, selection, gather, pack)


def read_part(
    part: Part,
    read: Read | None = None,
    *,
    files: OpenFiles,
    gather: bool = False,
    pack: Pack | None = None,
    selection: Selection = _ALL,
) -> Samples:
    """The samples of a part of a file; the rest as ``read_chunk``.

    Args:
        part: Of a file, or all of it.
        read: As ``read_chunk`` has it; such files have one part each.
        files: Those that are open.
        gather: Samples become columns where they can.
        pack: What becomes of strings then.
        selection: Which columns, and of which dtypes.
    """
    if part.end is None:
        return read_chunk(part.path, read, gather=gather, pack=pack, selection=selection)
    form = _form(part.path)
    with _failures(part.path, part.span) as context:
        if form.select_part is not None:
            return form.select_part(part, context, selection, files)
        if gather and form.gather_part is not None and not selection:
            with _ended(form.gather_part(part, context, pack=pack)) as blocks:
                return gathered(blocks, pack=pack)
        assert form.read_part is not None
        with _ended(form.read_part(part, context)) as samples:
            return _selected(samples, selection, gather, pack)


@contextmanager
def _ended(samples: Any) -> Iterator[Any]:
    """Closes what a reader has open also if what it yields is found to be wrong, and not when that is forgotten."""
    try:
        yield samples
    finally:
        if isinstance(samples, Generator):
            samples.close()


def _selected(found: Samples | Pieces, selection: Selection, gather: bool, pack: Pack | None) -> Samples:
    if isinstance(found, Columns):
        return selection.of_columns(found)
    pieces = iter([found]) if isinstance(found, list) else found
    if selection:
        pieces = selection.of_samples(pieces)
    return gathered(pieces, pack=pack) if gather else list(itertools.chain.from_iterable(pieces))


def count_part(part: Part, read: Read | None = None) -> int:
    """How many samples ``read_part`` gives, of a part whose rows are not known."""
    if part.end is None:
        return count_samples(part.path, read)
    form = _form(part.path)
    if form.count_part is None:
        return len(read_part(part, files=OpenFiles(0)))
    with _failures(part.path, part.span) as context:
        return form.count_part(part, context)


def count_samples(path: str, read: Read | None = None) -> int:
    """How many samples ``read_chunk`` gives; where the form of the file allows, without reading them."""
    form = _form(path) if read is None else None
    if form is None or form.count is None:
        return len(read_chunk(path, read))
    try:
        with _failures(path) as context:
            return form.count(path, context)
    except ChunkError:
        if not is_url(path):
            raise
        return len(read_chunk(path))  # some servers give whole files only


def _form(path: str) -> _Form:
    form = _FORMS.get(ending(path)[0])
    if form is None:
        known = ", ".join("." + known for known in _FORMS)
        raise ValueError(
            f"{shown(path)}: nothing is known about files with this ending. Known are {known}, also with "
            f"{', '.join(COMPRESSIONS)}; for any other give read=function(path) -> samples"
        )
    return form


@contextmanager
def _failures(path: str, span: str = "", own_read: bool = False) -> Iterator[ReadContext]:
    """Turns what goes wrong into an error that names the file and the context or the span, and tells no secrets."""
    context = ReadContext()
    try:
        yield context
    except ImportError:
        raise
    except MemoryError as error:
        if not span:
            error.add_note(f"stoker: {shown(path)} is read as a whole. If it is too large, {remedy(path, own_read)}")
        raise
    except FileNotFoundError as error:
        if "memory://" in path:
            error.add_note("memory:// is in the memory of one process: use workers=stoker.Threads(n), or real files")
        if shown(path) == path:
            raise
        raise missing(path) from None
    except Exception as error:
        if is_from_outside(error, may_set_timers=own_read):
            raise
        raised = _chunk_error(path, context.where or span, error)
        # The original tells its URL as a whole, so it does not go along where that has secrets.
        raise raised from (error if shown(path) == path else None)


def _chunk_error(path: str, at: str, error: Exception) -> ChunkError:
    told = without_secrets(message_of(error)) or "no message"
    where = f" at {at}" if at else ""
    raised = ChunkError(f"cannot read {shown(path)}{where}: {type(error).__name__}: {told}")
    notes = getattr(error, "__notes__", ())
    for note in notes if isinstance(notes, list) else ():
        add_note(raised, note)
    return raised


def _read_with(read: Read) -> Callable[[str, ReadContext], Columns | Pieces]:
    return lambda path, context: _given(read(path), context)


def _given(given: Any, context: ReadContext) -> Columns | Pieces:
    """What a function of the user gave, as samples."""
    if isinstance(given, Columns):
        return given
    if isinstance(given, np.ndarray):
        return Columns({None: given})
    if isinstance(given, Mapping):
        return Columns({key: _column(column) for key, column in given.items()})
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise TypeError(
            f"read gave an object of type {type(given).__name__}: let it yield samples, or return a list of samples, "
            f"an array, or a dict of columns"
        )
    return _pieces(iter(given), context)


def _pieces(samples: Iterator[Any], context: ReadContext) -> Pieces:
    for start in itertools.count(0, _PIECE):
        piece: list[Any] = []
        try:
            piece.extend(itertools.islice(samples, _PIECE))
        except Exception:
            context.where = f"sample {start + len(piece)}"
            raise
        if not piece:
            return
        yield piece


def _column(column: Any) -> Column:
    if isinstance(column, tuple | range):
        return list(column)
    is_array = hasattr(column, "__array__") and not isinstance(column, np.generic)
    return np.asarray(column) if is_array else column
