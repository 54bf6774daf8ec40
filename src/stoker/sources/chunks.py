"""Chunks: files too big for memory together, read group by group."""

from __future__ import annotations

import itertools
import os
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from stoker.collate import Objects, collate
from stoker.collate.columns import Taken
from stoker.plan.groups import sample_order
from stoker.sources.files.columns import Columns, Samples, joined

Files = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


@dataclass(frozen=True)
class Chunks:
    """A dataset of files, together bigger than memory, for ``Loader``.

    Args:
        files: A path, a glob, a folder, a URL that fsspec knows, or several of these.
        read: Gets a path, and gives or yields its samples, or gives them as columns: a dict of arrays or lists. None:
            by the file's ending, out of JSON lines, CSV, Parquet, Arrow, ``.npy``, ``.npz``, text lines and
            WebDataset's ``.tar``, also compressed.
        interleave: Files that are read together if the loader shuffles, so that their samples mix. Small files are
            read together anyway, up to 4 MiB.
        across_chunks: False: no batch has samples of two files, so the last of each file may be short.

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

    def __post_init__(self) -> None:
        if self.read is not None and not callable(self.read):
            raise TypeError(f"Chunks(read={self.read!r}): write a function that gets a path and gives its samples")
        if not isinstance(self.interleave, int) or isinstance(self.interleave, bool) or self.interleave < 1:
            raise ValueError(f"Chunks(interleave={self.interleave!r}): write a number of files, 1 or more")
        if not isinstance(self.across_chunks, bool):
            raise TypeError(f"Chunks(across_chunks={self.across_chunks!r}): write True or False")
        if isinstance(self.files, Iterable) and not isinstance(self.files, Sequence):
            object.__setattr__(self, "files", list(self.files))  # it is listed anew for each epoch


class Reading(NamedTuple):
    """A group of files to read, as a worker gets it.

    Attributes:
        files: Their numbers and paths.
        key: Of the order of their samples.
        start: The first sample to give.
        stop: The one after the last; None: to the end.
        lead: Samples before the first batch, which belong to one with those of the group before.
    """

    files: tuple[tuple[int, str], ...]
    key: int | None
    start: int
    stop: int | None
    lead: int


class Unread(NamedTuple):
    """A file that could not be read and was left out."""

    file: int
    error: str
    traceback: str


class Group(NamedTuple):
    """What becomes of a group: the sizes of its batches, and the loose samples before and after them.

    Where it is columns that are cut, ``table`` has all batches one after the other, and ``made`` is empty: it is much
    quicker to write a few large arrays than many small ones, and to cut those.
    """

    head: list[Any]
    sizes: Any
    made: list[Any]
    table: Any
    rest: list[Any]
    unread: list[Unread]

    def batches(self) -> list[Any]:
        if self.table is None:
            return self.made
        ends = np.cumsum(self.sizes).tolist()
        spans = [slice(start, stop) for start, stop in itertools.pairwise([0, *ends])]
        if not isinstance(self.table, dict):
            return [self.table[span] for span in spans]
        return [{key: column[span] for key, column in self.table.items()} for span in spans]


@dataclass(frozen=True)
class ReadGroup:
    """What a worker does with a group of files. ``leave_out``: files that cannot be read are reported, not raised."""

    read: Callable[[str], Any] | None
    batch_size: int | None
    collate: Callable[[list[Any]], Any] | None
    across_chunks: bool
    drop_last: bool
    leave_out: bool

    def __call__(self, reading: Reading) -> Group:
        found, unread = self._read(reading)
        if not self.across_chunks:
            batches = self._cut_each(found, reading.key)
            return Group([], _sizes(batches), self._made(batches), None, [], unread)
        samples = joined(found)
        order = sample_order(len(samples), reading.key)[reading.start : reading.stop]
        batches, left = self._cut(samples, order[reading.lead :])
        head, sizes, rest = _rows(samples, order[: reading.lead]), _sizes(batches), _rows(samples, left)
        if isinstance(samples, Columns) and self._cuts_columns:
            table = _table(samples, order[reading.lead : reading.lead + sizes.sum()])
            return Group(head, sizes, [], table, rest, unread)
        return Group(head, sizes, self._made(batches), None, rest, unread)

    @property
    def _cuts_columns(self) -> bool:
        return self.collate is None and self.batch_size is not None

    def _made(self, batches: list[tuple[Samples, Any]]) -> list[Any]:
        return [self._collate(samples, places) for samples, places in batches]

    def _read(self, reading: Reading) -> tuple[list[Samples], list[Unread]]:
        from stoker.sources.files.readers import read_chunk

        found: list[Samples] = []
        unread = []
        for number, path in reading.files:
            try:
                found.append(read_chunk(path, self.read, gather=self._cuts_columns))
            except Exception as error:
                if not self.leave_out:
                    raise
                words = "".join(traceback.format_exception_only(error)).strip()
                unread.append(Unread(number, words, "".join(traceback.format_exception(error))))
        return found, unread

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
        return batches if key is None else [batches[place] for place in sample_order(len(batches), key).tolist()]

    def _collate(self, samples: Samples, places: Any) -> Any:
        if self.batch_size is None:
            return _rows(samples, places)[0]
        if self.collate is not None:
            return self.collate(_rows(samples, places))
        if not isinstance(samples, Columns):
            return collate([samples[place] for place in places.tolist()], places.tolist())
        return _table(samples, places)


@dataclass(frozen=True)
class CountSamples:
    """What a worker does to count the samples of some files. ``leave_out``: of those that cannot be read, none."""

    read: Callable[[str], Any] | None
    leave_out: bool

    def __call__(self, paths: list[str]) -> Any:
        return np.array([self._count(path) for path in paths], np.int64)

    def _count(self, path: str) -> int:
        from stoker.sources.files.readers import count_samples

        try:
            return count_samples(path, self.read)
        except Exception:
            if not self.leave_out:
                raise
            return 0


def _sizes(batches: list[tuple[Samples, Any]]) -> Any:
    return np.array([len(places) for _, places in batches], np.int64)


def _table(samples: Columns, places: Any) -> Any:
    table = {key: _column(column, places) for key, column in samples.columns.items()}
    return table.get(None, table)  # the rows of a bare array


def _column(column: Any, places: Any) -> Any:
    if isinstance(column, list):
        return Objects(list(map(column.__getitem__, places.tolist())))
    return Taken(column, places)


def _rows(samples: Samples, places: Any) -> list[Any]:
    if isinstance(samples, Columns):
        return samples.take(places).rows()
    return [samples[place] for place in np.asarray(places).tolist()]
