"""Opening a file: a path of this machine, or a URL that fsspec knows; what is compressed is read uncompressed."""

from __future__ import annotations

import bz2
import errno
import importlib
import io
import lzma
import os
import re
import weakref
import zlib
from collections.abc import Callable
from typing import Any, BinaryIO, cast

from stoker.sources.files.compression import BLOCK_BYTES, Uncompressed

_EXTRA = "pip install 'stoker[files]'"

_USER = re.compile(r"(?<=://)[^/\s'\"]*@")
_QUERY = re.compile(r"(://(?:(?!::)[^?\s'\"])*)\?(?:(?!::)[^\s'\"])*")


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
    """The file, uncompressed, to be read whole: one that is far away is fetched at once, in one request."""
    return uncompressed(io.BytesIO(_fetched(path)) if is_url(path) else open_raw(path), path)


def open_pieces(path: str) -> BinaryIO:
    """The file, uncompressed, for those who need little of it: what they read of one far away is fetched then."""
    return open_file(path) if ending(path)[1] or not is_url(path) else open_raw(path)


def uncompressed(raw: BinaryIO, path: str) -> BinaryIO:
    """What ``raw`` holds, by the ending of ``path``: ``raw`` itself, or a reader that closes it."""
    decompressor = _DECOMPRESSORS.get(ending(path)[1])
    if decompressor is None:
        return raw
    return cast(BinaryIO, io.BufferedReader(Uncompressed(raw, decompressor), BLOCK_BYTES))


def open_raw(path: str) -> BinaryIO:
    """The file as it is."""
    if not is_url(path):
        return open(path, "rb")
    system, name = file_system(path)
    try:
        file = system.open(name, "rb")
    except FileNotFoundError:
        raise missing(path) from None  # the original may tell secrets
    weakref.finalize(file, id, system)  # holds on to it: an archive that nobody holds closes, with the files in it
    return cast(BinaryIO, file)


def _fetched(url: str) -> bytes:
    if "::" in url:  # through a cache or out of an archive, which cat_file may pass by
        with open_raw(url) as file:
            return file.read()
    system, name = file_system(url)
    try:
        return bytes(system.cat_file(name))
    except FileNotFoundError:
        raise missing(url) from None


def file_system(url: str) -> tuple[Any, str]:
    """fsspec's file system of a URL, and the name of the file in it."""
    system, name = needed("fsspec.core", f"reading {scheme(url)}").url_to_fs(url)
    return system, name


def missing(path: str) -> FileNotFoundError:
    """The error that says that it is not there."""
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), shown(path))


def shown(path: str) -> str:
    """The path as errors and logs may show it: a URL loses its user, its password and its query."""
    return without_secrets(path) if is_url(path) else path


def without_secrets(text: str) -> str:
    """The text, every URL in it without user, password and query."""
    return _QUERY.sub(r"\1", _USER.sub("", text))


def scheme(path: str) -> str:
    """The first part of a URL, which holds no secrets."""
    return path.partition("://")[0] + "://"


def ending(path: str) -> tuple[str, str]:
    """What says how to read it, and how it is compressed: ``("jsonl", ".gz")`` of ``a.jsonl.gz``."""
    stem, suffix = os.path.splitext(base_name(path).lower())
    if suffix not in _DECOMPRESSORS:
        return suffix.lstrip("."), ""
    return os.path.splitext(stem)[1].lstrip("."), suffix


def base_name(path: str) -> str:
    """The file's name, without its folders."""
    return os.path.basename(_inmost(path) if is_url(path) else path)


def _inmost(url: str) -> str:
    """The part that names the file: ``zip://a.csv`` of ``simplecache::zip://a.csv::s3://bucket/b.zip``."""
    parts = url.split("::")
    return next((part for part in parts if "://" in part), parts[0]).partition("?")[0]


def _zstd() -> Any:
    library = needed("zstandard", "reading .zst")
    return library.ZstdDecompressor(max_window_size=1 << 31).decompressobj()


_DECOMPRESSORS: dict[str, Callable[[], Any]] = {
    ".gz": lambda: zlib.decompressobj(wbits=31),
    ".bz2": bz2.BZ2Decompressor,
    ".xz": lzma.LZMADecompressor,
    ".zst": _zstd,
}
COMPRESSIONS = tuple(_DECOMPRESSORS)
