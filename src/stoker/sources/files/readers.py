"""Reading all samples of a file, by the ending of its name or by a function of the user; and counting them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from stoker.errors import ChunkError
from stoker.sources.files.arrays import count_npy, count_npz, read_npy, read_npz
from stoker.sources.files.columns import Column, Columns, Samples, gathered
from stoker.sources.files.lines import count_json, count_text, read_json, read_text
from stoker.sources.files.opening import COMPRESSIONS, ending, is_url, missing, shown, without_secrets
from stoker.sources.files.place import Place
from stoker.sources.files.tables import count_arrow, count_parquet, read_arrow, read_csv, read_parquet
from stoker.sources.files.tars import count_tar, read_tar

Pieces = Iterator[list[Any]]
Read = Callable[[str], Any]
_PIECE = 256  # samples that a function of the user yields


@dataclass(frozen=True)
class _Form:
    """How files of one ending are read, and counted if that is quicker."""

    read: Callable[[str, Place], Samples | Pieces]
    count: Callable[[str, Place], int] | None = None


_JSON = _Form(read_json, count_json)
_ARROW = _Form(read_arrow, count_arrow)
_FORMS = {
    "jsonl": _JSON,
    "ndjson": _JSON,
    "json": _JSON,
    "csv": _Form(read_csv),
    "tsv": _Form(read_csv),
    "parquet": _Form(read_parquet, count_parquet),
    "arrow": _ARROW,
    "feather": _ARROW,
    "ipc": _ARROW,
    "npy": _Form(read_npy, count_npy),
    "npz": _Form(read_npz, count_npz),
    "txt": _Form(read_text, count_text),
    "tar": _Form(read_tar, count_tar),
}


def read_chunk(path: str, read: Read | None = None, *, gather: bool = False) -> Samples:
    """All samples of a file.

    Args:
        path: Of this machine, or a URL that fsspec knows.
        read: A function of the path that gives or yields samples, or gives an array, or a dict of columns. Without
            it the ending of the path says what the file holds.
        gather: Samples become columns where they can.

    Raises:
        ChunkError: The file cannot be read to its end.
        FileNotFoundError: There is no such file.
    """
    read_it = _form(path).read if read is None else _read_with(read)
    with _failures(path) as place:
        found = read_it(path, place)
        if isinstance(found, Columns):
            return found
        pieces = [found] if isinstance(found, list) else found
        return gathered(pieces) if gather else list(itertools.chain.from_iterable(pieces))


def count_samples(path: str, read: Read | None = None) -> int:
    """How many samples ``read_chunk`` gives; where the form of the file allows, without reading them."""
    form = _form(path) if read is None else None
    if form is None or form.count is None:
        return len(read_chunk(path, read))
    try:
        with _failures(path) as place:
            return form.count(path, place)
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
def _failures(path: str) -> Iterator[Place]:
    """Turns what goes wrong into an error that names the file and the place, and tells no secrets."""
    place = Place()
    try:
        yield place
    except (ImportError, MemoryError):
        raise
    except FileNotFoundError as error:
        if "memory://" in path:
            error.add_note("memory:// is in the memory of one process: use workers=stoker.Threads(n), or real files")
        if shown(path) == path:
            raise
        raise missing(path) from None
    except Exception as error:
        raised = _chunk_error(path, place, error)
        # The original tells its URL as a whole, so it does not go along where that has secrets.
        raise raised from (error if shown(path) == path else None)


def _chunk_error(path: str, place: Place, error: Exception) -> ChunkError:
    told = without_secrets(str(error)) or "no message"
    where = f" at {place.where}" if place.where else ""
    raised = ChunkError(f"cannot read {shown(path)}{where}: {type(error).__name__}: {told}")
    for note in getattr(error, "__notes__", ()):
        raised.add_note(note)
    return raised


def _read_with(read: Read) -> Callable[[str, Place], Columns | Pieces]:
    return lambda path, place: _given(read(path), place)


def _given(given: Any, place: Place) -> Columns | Pieces:
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
    return _pieces(iter(given), place)


def _pieces(samples: Iterator[Any], place: Place) -> Pieces:
    for start in itertools.count(0, _PIECE):
        piece: list[Any] = []
        try:
            piece.extend(itertools.islice(samples, _PIECE))
        except Exception:
            place.where = f"sample {start + len(piece)}"
            raise
        if not piece:
            return
        yield piece


def _column(column: Any) -> Column:
    if isinstance(column, tuple | range):
        return list(column)
    is_array = hasattr(column, "__array__") and not isinstance(column, np.generic)
    return np.asarray(column) if is_array else column
