"""A list of files that may be millions: their paths in one piece of memory, with sizes and stamps."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import xxhash

from stoker.sources.files.finding import find
from stoker.sources.files.opening import shown

Files = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
Int64s = np.ndarray[Any, np.dtype[np.int64]]

_REMEDY = "pass files='data/*.jsonl', a folder, a URL, or a list of these"
_NAMES = 3  # how many files of a kind a message names


@dataclass(frozen=True, eq=False)
class Listing:
    """The files, in order.

    Attributes:
        paths: All paths, one behind the other.
        ends: Where each of them ends.
        roots: How many bytes of each are where it was found; what follows is its name.
        sizes: In bytes, -1 where it is not known.
        stamps: The time of the last change in ns, or another number that changes with the file; 0 if not known.
    """

    paths: bytes
    ends: Int64s
    roots: Int64s
    sizes: Int64s
    stamps: Int64s

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, index: int) -> str:
        if not -len(self) <= index < len(self):
            raise IndexError(f"file {index} of {len(self)}")
        return os.fsdecode(self._path(index % len(self)))

    def __iter__(self) -> Iterator[str]:
        return map(self.__getitem__, range(len(self)))

    def fingerprint(self) -> str:
        """A hexadecimal number of names and sizes, in order; it does not depend on where the folder is."""
        digest = xxhash.xxh3_128()
        for index, root in enumerate(self.roots.tolist()):
            digest.update(self._path(index)[root:] + b"\0")
        digest.update(self.sizes.tobytes())
        return digest.hexdigest()

    def changes_since(self, older: Listing) -> Changes | None:
        """What became of the files of ``older``; None if they are all there, unchanged, and no others."""
        now, then = self._digests(), older._digests()
        appeared = np.flatnonzero(~np.isin(now, then))
        vanished = np.flatnonzero(~np.isin(then, now))
        _, here, there = np.intersect1d(now, then, return_indices=True)
        differ = _differ(self.sizes[here], older.sizes[there], -1) | _differ(self.stamps[here], older.stamps[there], 0)
        changed = np.sort(here[differ])
        if not len(appeared) and not len(vanished) and not len(changed):
            return None
        return Changes(self._some(appeared), older._some(vanished), self._some(changed))

    def _path(self, index: int) -> bytes:
        return self.paths[self.ends[index - 1] if index else 0 : self.ends[index]]

    def _digests(self) -> np.ndarray[Any, np.dtype[np.uint64]]:
        paths = map(self._path, range(len(self)))
        return np.fromiter(map(xxhash.xxh3_64_intdigest, paths), np.uint64, len(self))

    def _some(self, indices: Int64s) -> Some:
        return Some(len(indices), tuple(os.path.basename(shown(self[i])) for i in indices[:_NAMES].tolist()))


@dataclass(frozen=True)
class Some:
    """A number of files, and the names of the first."""

    count: int
    names: tuple[str, ...]

    def __str__(self) -> str:
        return ", ".join(self.names) + (", ..." if self.count > len(self.names) else "")


@dataclass(frozen=True)
class Changes:
    """How the files of one listing differ from those of an older one."""

    appeared: Some
    vanished: Some
    changed: Some

    def __str__(self) -> str:
        told = [(self.appeared, "appeared"), (self.vanished, "vanished"), (self.changed, "changed")]
        parts = [(some, f"{some.count:,}", verb) for some, verb in told if some.count]
        nouns = [" file" if parts[0][0].count == 1 else " files", "", ""]
        return ", ".join(f"{n}{noun} {verb} ({some})" for (some, n, verb), noun in zip(parts, nouns, strict=False))


def list_files(files: Files) -> Listing:
    """Lists the files of a path, pattern, folder or URL, or of several, each file once.

    Those of one entry are sorted; in folders, names that begin with "." or "_" are left out.
    """
    paths = bytearray()
    ends, roots, sizes, stamps = array("q"), array("q"), array("q"), array("q")
    entries = 0
    for entry in _entries(files):
        entries += 1
        before = len(ends)
        for found in find(entry):
            paths += found.path
            ends.append(len(paths))
            roots.append(found.root)
            sizes.append(found.size)
            stamps.append(found.stamp)
        if len(ends) == before:
            raise FileNotFoundError(f"no files in {shown(entry)}: check the folder or the pattern; {_REMEDY}")
    if not entries:
        raise ValueError(f"files is empty: {_REMEDY}")
    listing = Listing(bytes(paths), *(np.frombuffer(a, np.int64) for a in (ends, roots, sizes, stamps)))
    return listing if entries == 1 else _each_once(listing)


def _entries(files: Files) -> Iterator[str]:
    if isinstance(files, str | os.PathLike):
        yield _path(files)
        return
    if isinstance(files, bytes | Mapping | Set) or not isinstance(files, Iterable):
        raise TypeError(f"files is of type {type(files).__name__}, which is no path and no list of paths: {_REMEDY}")
    yield from map(_path, files)


def _path(entry: object) -> str:
    path = os.fspath(entry) if isinstance(entry, os.PathLike) else entry
    if not isinstance(path, str):
        raise TypeError(f"files holds {entry!r} of type {type(entry).__name__}, which is no path: {_REMEDY}")
    return path


def _each_once(listing: Listing) -> Listing:
    """Without the files that an earlier entry has listed."""
    digests = b"".join(xxhash.xxh3_128_digest(listing._path(i)) for i in range(len(listing)))
    halves = np.frombuffer(digests, np.uint64).reshape(-1, 2)
    order = np.lexsort((halves[:, 0], halves[:, 1]))  # stable: of equal ones the first stays first
    again = order[1:][(halves[order[1:]] == halves[order[:-1]]).all(axis=1)]
    if not len(again):
        return listing
    kept = np.delete(np.arange(len(listing)), again)
    pieces = [listing._path(i) for i in kept.tolist()]
    ends = np.cumsum([len(piece) for piece in pieces], dtype=np.int64)
    return Listing(b"".join(pieces), ends, listing.roots[kept], listing.sizes[kept], listing.stamps[kept])


def _differ(new: Int64s, old: Int64s, unknown: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    differ: np.ndarray[Any, np.dtype[np.bool_]] = (new != old) & (new != unknown) & (old != unknown)
    return differ
