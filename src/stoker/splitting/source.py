"""The file that is cut: where it is, of what form, and how one knows that it is still the same."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass

from stoker.sources.files.opening import base_name, ending, file_system, is_url, shown

FORMS = ("txt", "jsonl", "ndjson", "csv", "tsv", "npy", "tar", "parquet")

# What file systems of fsspec call that which changes with the content, the surest first.
_VERSIONS = ("ETag", "etag", "md5Hash", "content_md5", "mtime", "LastModified", "last_modified", "updated", "created")


@dataclass(frozen=True)
class Source:
    """A file that was there when it was looked at.

    Attributes:
        name: Without its folders: ``big.jsonl.gz``.
        size: As it is stored; None where a server does not tell.
        version: Changes if the file does: when it was written, or what a server has for that.
        mode: Who may read and write it; its chunks are for nobody else.
    """

    path: str
    name: str
    form: str
    compression: str
    size: int | None
    version: str
    mode: int = 0o666

    @property
    def shown(self) -> str:
        """The path as an error may show it."""
        return shown(self.path)

    def chunk_name(self, number: int) -> str:
        """``big-00003.jsonl.gz``. Never hidden, even if the source is."""
        endings = len(self.form) + 1 + len(self.compression)
        stem = self.name[:-endings].lstrip(".") or "chunk"
        return f"{stem}-{number:05d}{self.name[-endings:]}"


def find(path: str | os.PathLike[str]) -> Source:
    """
    Raises:
        ValueError: There is no such file, or no way to cut it.
    """
    text = os.fspath(path)
    if not isinstance(text, str):
        raise TypeError(f"source must be a path or a URL, and {path!r} is a {type(path).__name__}")
    form, compression = ending(text)
    name = base_name(text)
    if form not in FORMS or (form == "parquet" and compression):
        raise ValueError(
            f"{name} has an ending that split does not know: it cuts .{', .'.join(FORMS)}, "
            f"and these but .parquet also with .gz, .bz2, .xz or .zst behind it"
        )
    return Source(text, name, form, compression, *(_looked_up(text) if is_url(text) else _looked_at(text)))


def _looked_at(path: str) -> tuple[int, str, int]:
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ValueError(f"{path} does not exist") from error
    if stat.S_ISDIR(found.st_mode):
        raise ValueError(f"{path} is a folder: split cuts one file")
    if not stat.S_ISREG(found.st_mode):
        raise ValueError(f"{path} is no regular file: split may have to read it twice")
    return found.st_size, f"mtime {found.st_mtime_ns}", (found.st_mode | stat.S_IRUSR | stat.S_IWUSR) & 0o666


def _looked_up(url: str) -> tuple[int | None, str, int]:
    files, path = file_system(url)
    try:
        found = files.info(path)
    except FileNotFoundError:
        raise ValueError(f"{shown(url)} does not exist") from None  # the original may tell secrets
    if found.get("type") == "directory":
        raise ValueError(f"{shown(url)} is a folder: split cuts one file")
    told = next((f"{name} {found[name]}" for name in _VERSIONS if found.get(name) is not None), "")
    return found.get("size"), told, 0o666
