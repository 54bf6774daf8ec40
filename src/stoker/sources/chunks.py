"""Chunks: files too big for memory together, read group by group."""

from __future__ import annotations

import itertools
import os
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from stoker.collation import Objects, collate
from stoker.collation.columns import Columnar, made
from stoker.counts import checked_count
from stoker.errors import CollateError
from stoker.interrupts import is_from_outside
from stoker.plan.groups import sample_order
from stoker.sources.files.columns import Columns, Pack, Samples, joined, rows_of
from stoker.sources.files.forms import Form, agreed, check_no_nulls, form_of
from stoker.sources.files.open_files import OpenFiles
from stoker.sources.files.opening import shown
from stoker.sources.files.selection import Dtype, Selection
from stoker.sources.files.texts import PackedTexts, Texts
from stoker.sources.group_table import (
    Batches,
    Hold,
    as_texts,
    batches_of,
    columns_of,
    in_order_of,
    opened,
    packed,
    table_of,
)
from stoker.sources.packed_rows import PackedRows, PackSamples
from stoker.sources.retry import Call

if TYPE_CHECKING:
    from stoker.sources.files.parts import Part

_ALL = Selection()
_OPEN_FILES = 8  # that a worker keeps open, if nobody says otherwise

Files = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


@dataclass(frozen=True, repr=False)
class Chunks:
    """A dataset of files of any size, together bigger than memory, for ``Loader``.

    Args:
        files: A path, a glob pattern, a folder, a URL that fsspec knows, or several of these.
        read: A function that gets a path, and returns or yields its samples, or returns them as columns: a dict of
            arrays or lists. None: the file is read by its ending: JSON lines, CSV, Parquet, Arrow, ``.npy``, ``.npz``,
            lines of text or a WebDataset ``.tar``, also compressed.
        interleave: The number of parts of files that are read together if the loader shuffles, so that their samples
            mix. A file of up to 8 MiB is one part, a larger file has parts of about 4 MiB. Small parts are always read
            together, up to 4 MiB.
        across_chunks: False: no batch has samples of two files, so the last batch of each file may be short.
        columns: The names of the columns to read. None: all columns. Of Parquet files, no other column is read.
        dtypes: The types of columns, by their names: a numpy dtype, with NaN or NaT for null; ``("float32", 64)`` for
            lists that all have that length; ``str``; or ``object`` for a list of Python objects, with None for null.
            See "What a column is in a batch" in docs/tables.md.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument has a wrong value.

    Example:
        >>> import pathlib, tempfile, stoker
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> for name in "ab":
        ...     _ = (folder / f"{name}.txt").write_text(f"{name}1\\n{name}2\\n{name}3\\n")
        >>> with stoker.Loader(stoker.Chunks(folder), batch_size=4) as loader:
        ...     list(loader)
        [['a1', 'a2', 'a3', 'b1'], ['b2', 'b3']]
    """

    files: Files
    read: Callable[[str], Any] | None = None
    interleave: int = 4
    across_chunks: bool = True
    columns: Sequence[str] | None = None
    dtypes: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.read is not None and not callable(self.read):
            raise TypeError(f"Chunks(read={self.read!r}): pass a function that takes a path and returns its samples")
        remedy = "a number of parts of files, 1 or more"
        object.__setattr__(self, "interleave", checked_count("interleave", self.interleave, remedy, of="Chunks"))
        if not isinstance(self.across_chunks, bool):
            raise TypeError(f"Chunks(across_chunks={self.across_chunks!r}): pass True or False")
        if isinstance(self.columns, Iterable) and not isinstance(self.columns, str):
            object.__setattr__(self, "columns", tuple(self.columns))
        _ = self.selection  # checks it
        if isinstance(self.files, Iterable) and not isinstance(self.files, Sequence):
            object.__setattr__(self, "files", list(self.files))  # it is listed anew for each epoch

    def __repr__(self) -> str:
        """The first file, without secrets, and how many more."""
        files = [self.files] if isinstance(self.files, (str, os.PathLike)) else list(self.files)
        first = repr(shown(os.fspath(files[0]))) if files else "[]"
        more = f" and {len(files) - 1} more" if len(files) > 1 else ""
        return f"Chunks({first}{more}, interleave={self.interleave}, across_chunks={self.across_chunks})"

    @property
    def selection(self) -> Selection:
        """Raises ``TypeError`` or ``ValueError`` if it is none."""
        names = self.columns
        if names is not None and (not isinstance(names, tuple) or not all(isinstance(name, str) for name in names)):
            raise TypeError(f"Chunks(columns={names!r}): pass a list of names")
        if names is not None and (not names or len(set(names)) < len(names)):
            raise ValueError(f"Chunks(columns={list(names)!r}): pass one name or more, each once")
        if self.dtypes is not None and not isinstance(self.dtypes, Mapping):
            raise TypeError(f"Chunks(dtypes={self.dtypes!r}): pass a dict of names and dtypes")
        dtypes = {name: Dtype.of(name, given) for name, given in (self.dtypes or {}).items()}
        others = [name for name in dtypes if names is not None and {name, name.partition(".")[0]}.isdisjoint(names)]
        if others:
            raise ValueError(f"Chunks(dtypes=...) has {others[0]!r}, which is not among columns={list(names or ())}")
        return Selection(None if names is None else tuple(names), dtypes)


class Reading(NamedTuple):
    """A group of parts of files to read, as a worker gets it.

    Attributes:
        parts: Which.
        key: Of the order of their samples.
        start: The first sample to give.
        stop: The one after the last; None: to the end.
        lead: Samples before the first batch, which belong to one with those of the group before.
    """

    parts: tuple[Part, ...]
    key: int | None
    start: int
    stop: int | None
    lead: int


class Unread(NamedTuple):
    """A part that could not be read and was left out."""

    part: int
    error: str
    traceback: str


class Row(NamedTuple):
    """A loose sample that is still a row of columns, so that batches of such have the form of all others."""

    columns: Columns
    at: int

    def sample(self) -> Any:
        return self.columns.take([self.at]).rows()[0]


class Group(NamedTuple):
    """What becomes of a group.

    Where it is columns that are cut, ``table`` has all of its rows, one after the other.

    Attributes:
        head: Loose samples before the first batch.
        sizes: Of the batches.
        made: The batches.
        rest: Loose samples after the last one.
        table: Instead of these three: the head, the batches and the rest.
        lead: How many rows of the table are the head.
        unread: Parts that were left out.
        form: Of the columns of its batches, where they have one that all groups must agree on.
        is_collated: Its batches are what the default collation or columns give, and no function of the user.
    """

    head: list[Any]
    sizes: Any
    made: list[Any]
    rest: list[Any]
    table: Any
    lead: int
    unread: list[Unread]
    form: dict[str, str]
    is_collated: bool

    def batches(self) -> Batches:
        """Each is cut when it is asked for."""
        if self.table is not None:
            return batches_of(self.table, bounds_of(self.lead, self.sizes))
        return Batches(lambda nth: opened(self.made[nth]) if self.is_collated else self.made[nth], len(self.made))

    def record_batches(self, to_arrow: Callable[[Any], Any]) -> Batches:
        """The same as record batches, which are slices of one for the whole group where columns are cut."""
        if self.table is None:
            return Batches(lambda nth: to_arrow(self.made[nth]), len(self.made))
        bounds, whole = bounds_of(self.lead, self.sizes), to_arrow(self.table)
        return Batches(lambda nth: whole.slice(bounds[nth], bounds[nth + 1] - bounds[nth]), len(self.sizes))

    def loose(self) -> tuple[list[Any], int]:
        """The loose samples, and how many of them are before the first batch."""
        if self.table is None:
            return [*self.head, *self.rest], len(self.head)
        columns = columns_of(self.table, gathered=not self.form)
        first = self.lead + int(self.sizes.sum())
        loose = columns.take([*range(self.lead), *range(first, len(columns))])  # in memory of their own
        return [Row(loose, at) for at in range(len(loose))], self.lead

    def in_order_of(self, form: Form) -> Group:
        """With the columns in that order: files may have them in another one."""
        if not self.form or list(self.form) == list(form):
            return self
        return self._replace(table=in_order_of(self.table, form), made=[in_order_of(one, form) for one in self.made])


@dataclass(frozen=True)
class ReadGroup:
    """What a worker does with a group of parts.

    ``leave_out``: parts that cannot be read are reported, not raised. ``files``: those that it has open.
    """

    read: Callable[[str], Any] | None
    batch_size: int | None
    collate: Callable[[list[Any]], Any] | None
    across_chunks: bool
    drop_last: bool
    leave_out: bool
    selection: Selection = _ALL
    files: OpenFiles = field(default_factory=lambda: OpenFiles(_OPEN_FILES))
    pack: PackSamples | None = None

    retries_parts: ClassVar[bool] = True

    def __call__(self, reading: Reading, call: Call | None = None) -> Group | PackedRows:
        """``call``: by which each part is read; None: directly."""
        found, unread = self._read(reading, call)
        if self.pack is not None:
            return self._packed(joined([part for _, part in found]), reading, self.pack)._replace(unread=unread)
        form = self._form(found) if self._cuts_columns else {}
        samples = [part for _, part in found]
        if not self.across_chunks:
            batches = self._cut_each(samples, reading.key)
            made, sizes = self._made(batches), _sizes(batches)
            return Group([], sizes, made, [], None, 0, unread, dict(form), self._cuts_columns)
        return self._group(joined(samples), reading, unread, dict(form))

    def _group(self, samples: Samples, reading: Reading, unread: list[Unread], form: dict[str, str]) -> Group:
        order = sample_order(len(samples), reading.key)[reading.start : reading.stop]
        batches, left = self._cut(samples, order[reading.lead :])
        sizes, is_collated = _sizes(batches), self._cuts_columns
        if isinstance(samples, Columns) and is_collated:
            in_order = reading.key is None and len(order) > 0
            indices = slice(int(order[0]), int(order[-1]) + 1) if in_order else order
            lead = min(reading.lead, len(order))
            table = table_of(samples, indices, self._hold(bounds_of(lead, sizes)))
            return Group([], sizes, [], [], table, lead, unread, form, is_collated)
        head, rest = _rows(samples, order[: reading.lead]), _rows(samples, left)
        return Group(head, sizes, self._made(batches), rest, None, 0, unread, form, is_collated)

    def _packed(self, samples: Samples, reading: Reading, pack: PackSamples) -> PackedRows:
        order = sample_order(len(samples), reading.key)[reading.start : reading.stop]
        try:
            return pack(_packable(samples, order), order.tolist())
        except CollateError as error:
            error.add_note(
                f"stoker: it is the number of the sample among those of {', '.join(map(str, reading.parts))}"
            )
            raise

    def _hold(self, bounds: Iterable[int]) -> Hold:
        return as_texts if self.selection.keeps_nulls else partial(packed, bounds=bounds)

    @property
    def _cuts_columns(self) -> bool:
        return self.collate is None and self.batch_size is not None and self.pack is None

    def _form(self, found: list[tuple[str, Samples]]) -> Form:
        """Of the columns of all files, which must agree; those that were gathered out of samples need not."""
        form: Form = {}
        first = ""
        for path, samples in found:
            if isinstance(samples, Columns) and not samples.gathered and len(samples):
                if not self.selection.keeps_nulls:
                    check_no_nulls(samples, shown(path))
                form = agreed(form, first, form_of(samples, shapes=self.across_chunks), shown(path))
                first = first or shown(path)
        return form

    def _made(self, batches: list[tuple[Samples, Any]]) -> list[Any]:
        return [self._collate(samples, indices) for samples, indices in batches]

    def _read(self, reading: Reading, call: Call | None) -> tuple[list[tuple[str, Samples]], list[Unread]]:
        found: list[tuple[str, Samples]] = []
        unread = []
        in_order = reading.key is None
        for part in reading.parts:
            try:
                read = self._read_one(part, in_order) if call is None else call(self._read_one, part, in_order)
                found.append((part.path, read))
            except BaseException as error:
                if not self.leave_out or is_from_outside(error, may_set_timers=self.read is not None):
                    raise
                words = "".join(traceback.format_exception_only(error)).strip()
                words = f"{part}: {words}" if part.span else words
                unread.append(Unread(part.number, words, "".join(traceback.format_exception(error))))
        return found, unread

    def _read_one(self, part: Part, in_order: bool) -> Samples:
        from stoker.sources.files.readers import read_part

        to_arrow, is_cut_once = self.selection.keeps_nulls, in_order and self.across_chunks
        pack: Pack | None = Texts.of if to_arrow else PackedTexts.of if is_cut_once else None
        how: dict[str, Any] = {"gather": self._cuts_columns, "pack": pack, "selection": self.selection}
        return read_part(part, self.read, files=self.files, **how)

    def _cut(self, samples: Samples, order: Any) -> tuple[list[tuple[Samples, Any]], Any]:
        size = self.batch_size or 1
        full = len(order) - len(order) % size
        return [(samples, order[start : start + size]) for start in range(0, full, size)], order[full:]

    def _cut_each(self, found: list[Samples], key: int | None) -> list[tuple[Samples, Any]]:
        """Batches of one file each; shuffled, they change places among those of the group."""
        batches = []
        for number, samples in enumerate(found):
            order = sample_order(len(samples), None if key is None else key + number)
            full, rest = self._cut(samples, order)
            batches += [*full, (samples, rest)] if len(rest) and not self.drop_last else full
        return batches if key is None else [batches[index] for index in sample_order(len(batches), key).tolist()]

    def _collate(self, samples: Samples, indices: Any) -> Any:
        if self.batch_size is None:
            return _rows(samples, indices)[0]
        if self.collate is not None:
            return self.collate(_rows(samples, indices))
        if isinstance(samples, Columns):
            return table_of(samples, indices, self._hold(()))
        try:
            return collate([samples[index] for index in indices.tolist()], indices.tolist())
        except CollateError as error:
            error.add_note("stoker: Chunks(..., dtypes={...}) makes of each column what you pass, nulls and all")
            raise


@dataclass(frozen=True)
class CountSamples:
    """What a worker does to count the samples of some parts. ``leave_out``: of those that cannot be read, none."""

    read: Callable[[str], Any] | None
    leave_out: bool
    retries_parts: ClassVar[bool] = True

    def __call__(self, parts: list[Part], call: Call | None = None) -> Any:
        return np.array([self._count(part, call) for part in parts], np.int64)

    def _count(self, part: Part, call: Call | None) -> int:
        from stoker.sources.files.readers import count_part

        try:
            return count_part(part, self.read) if call is None else int(call(count_part, part, self.read))
        except BaseException as error:
            if not self.leave_out or is_from_outside(error, may_set_timers=self.read is not None):
                raise
            return 0


def bounds_of(lead: int, sizes: Any) -> list[int]:
    """The rows of a table at which batches begin, and the last one ends."""
    return [lead, *(lead + np.cumsum(sizes)).tolist()]


def _sizes(batches: list[tuple[Samples, Any]]) -> Any:
    return np.array([len(indices) for _, indices in batches], np.int64)


def joined_rows(rows: Sequence[Row], *, as_columns: bool = False) -> Any:
    """A batch of rows, perhaps of several groups. ``as_columns``: strings and lists stay columns."""
    parts = [(columns, [row.at for row in some]) for columns, some in itertools.groupby(rows, lambda row: row.columns)]
    found = joined([columns.take(indices) for columns, indices in parts])
    if not isinstance(found, Columns):
        return made(collate(found))  # of samples that were gathered, and are not alike
    batch = made(table_of(found, slice(0, len(found)), as_texts if as_columns else Objects))
    return batch if as_columns else opened(batch)


def _packable(samples: Samples, indices: Any) -> Sequence[Any]:
    """Columns stay columns: of those that are not packed, no sample is made."""
    if not isinstance(samples, Columns) or None in samples.columns:
        return _rows(samples, indices)
    taken = samples.take(indices)
    return Columnar({key: rows_of(column, taken.gathered) for key, column in taken.columns.items()}, len(taken))


def _rows(samples: Samples, indices: Any) -> list[Any]:
    if isinstance(samples, Columns):
        return samples.take(indices).rows()
    return [samples[index] for index in np.asarray(indices).tolist()]
