"""Opening a file: a path of this machine, or a URL that fsspec knows; what is compressed is read uncompressed."""

from __future__ import annotations

import bz2
import gzip
import importlib
import io
import lzma
import os
import weakref
from collections.abc import Callable
from typing import Any, BinaryIO, cast

from stoker.sources.files.zst import ZstReader

COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst")

_EXTRA = "pip install 'stoker[files]'"


def is_url(path: str) -> bool:
    """Whether it is fsspec's business: ``s3://...``, ``zip://a.csv::b.zip``."""
    return "://" in path or "::" in path


def needed(module: str, why: str) -> Any:
    """Imports a library that is no part of the core."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"{why} needs {module.partition('.')[0]}: {_EXTRA}") from error


def open_file(path: str) -> BinaryIO:
    """The file, uncompressed, to be read from its beginning."""
    return uncompressed(open_raw(path), path)


def uncompressed(raw: BinaryIO, path: str) -> BinaryIO:
    """What ``raw`` holds, by the ending of ``path``; ``raw`` itself if that is not compressed."""
    uncompressing = _UNCOMPRESSING.get(ending(path)[1])
    return raw if uncompressing is None else uncompressing(raw)


def open_raw(path: str) -> BinaryIO:
    """The file as it is."""
    if is_url(path):
        system, name = needed("fsspec.core", f"reading {scheme(path)}").url_to_fs(path)
        file = cast(BinaryIO, system.open(name, "rb"))
        weakref.finalize(file, id, system).atexit = False  # an archive closes its files when it is forgotten
        return file
    return open(path, "rb")


def scheme(path: str) -> str:
    """The first part of a URL, which holds no secrets."""
    return path.partition("://")[0] + "://"


def ending(path: str) -> tuple[str, str]:
    """What says how to read it, and how it is compressed: ``("jsonl", ".gz")`` of ``a.jsonl.gz``."""
    name = os.path.basename(path.partition("::")[0].partition("?")[0]).lower()
    stem, suffix = os.path.splitext(name)
    if suffix not in COMPRESSIONS:
        return suffix.lstrip("."), ""
    return os.path.splitext(stem)[1].lstrip("."), suffix


def _zstd(raw: BinaryIO) -> BinaryIO:
    return cast(BinaryIO, io.BufferedReader(ZstReader(raw, needed("zstandard", "reading .zst"))))


_UNCOMPRESSING: dict[str, Callable[[BinaryIO], BinaryIO]] = {
    ".gz": lambda raw: cast(BinaryIO, gzip.GzipFile(fileobj=raw)),
    ".bz2": lambda raw: cast(BinaryIO, bz2.BZ2File(raw)),
    ".xz": lambda raw: cast(BinaryIO, lzma.LZMAFile(raw)),  # noqa: SIM115
    ".zst": _zstd,
}
