"""``.split.json``: of which file the chunks of a folder are, how they were cut, and how far that is."""

from __future__ import annotations

from pathlib import Path

import msgspec

from stoker.private_files import UnsafeFile, read_regular
from stoker.splitting.limit import Limit
from stoker.splitting.sink import replacing
from stoker.splitting.source import Source

NAME = ".split.json"
FORMAT = 1


class Chunk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A finished chunk: its file, its records, the bytes of its content before compression, and those of its file.

    The last are -1 in manifests from before they were written down.
    """

    name: str
    records: int
    bytes: int
    stored: int = -1


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What ``.split.json`` says.

    Attributes:
        stoker_split: The format of the manifest.
        source_size, source_version: Of the file when the split was begun: if they differ, it is another file.
        size, count: The limit of a chunk: one of them.
        next: Where in the source the next chunk begins: a byte of its content, or a row of .npy and .parquet.
    """

    stoker_split: int
    source: str
    source_size: int | None
    source_version: str
    size: int | None
    count: int | None
    finished: bool = False
    next: int = 0
    chunks: tuple[Chunk, ...] = ()


def begun(source: Source, limit: Limit) -> Manifest:
    """The manifest of a split that has no chunk yet."""
    return Manifest(FORMAT, source.name, source.size, source.version, limit.size, limit.count)


def read(folder: Path) -> Manifest | None:
    """What the folder's manifest says; None if it has none.

    Raises:
        ValueError: It is damaged, or of another format.
    """
    try:
        told = read_regular(str(folder / NAME))
    except FileNotFoundError:
        return None
    except UnsafeFile as error:
        raise ValueError(f"{folder / NAME} is not what split has written there: {error.strerror}") from error
    try:
        manifest = msgspec.json.decode(told, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{folder / NAME} is damaged ({error}): {remedy(folder)}") from error
    if manifest.stoker_split != FORMAT:
        raise ValueError(f"{folder / NAME} is of format {manifest.stoker_split}, not {FORMAT}: {remedy(folder)}")
    return manifest


def write(folder: Path, manifest: Manifest) -> None:
    """All of it or nothing."""
    with replacing(folder / NAME) as file:
        file.write(msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n")


def remedy(folder: Path) -> str:
    return f"remove the folder {folder} to split anew, or give another"
