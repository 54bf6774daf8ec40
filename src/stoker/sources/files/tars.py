"""Tar archives as WebDataset writes them: the files that share a name up to its first dot are one sample."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from typing import Any, BinaryIO

import msgspec
import numpy as np

from stoker.sources.files.arrays import parse_npy
from stoker.sources.files.opening import needed, open_file, open_pieces
from stoker.sources.files.read_context import ReadContext

_IMAGES = {"jpg", "jpeg", "png", "webp", "ppm"}
_NUMBERS = {"cls", "index", "inx"}


def read_tar(path: str, context: ReadContext) -> list[dict[str, Any]]:
    """A dict for each sample: its ``__key__``, and the value of each of its files by the ending."""
    samples: list[dict[str, Any]] = []
    with open_file(path) as file:
        for key, kind, member, archive in _members(file, context):
            if not samples or samples[-1]["__key__"] != key:
                samples.append({"__key__": key})
            samples[-1][kind] = _decoded(kind, _content(archive, member))
    return samples


def count_tar(path: str, context: ReadContext) -> int:
    """The number of samples, by the headers."""
    with open_pieces(path) as file:
        return len({key for key, *_ in _members(file, context)})


def _members(file: BinaryIO, context: ReadContext) -> Iterator[tuple[str, str, tarfile.TarInfo, tarfile.TarFile]]:
    """The files of samples, with the key of the sample and the ending; others are passed over, as WebDataset does."""
    seen: dict[str, set[str]] = {}
    last = ""
    with tarfile.TarFile(fileobj=file) as archive:
        for member in archive:
            context.where = f"member {member.name!r}, byte {member.offset:,}"
            key, kind = _key_and_kind(member.name)
            if member.isfile() and key and kind:
                _check(key, kind, last, seen)
                last = key
                yield key, kind, member, archive
        context.where = f"byte {archive.offset:,}"
        _check_end(file, archive.offset)
        context.where = ""


def _key_and_kind(name: str) -> tuple[str, str]:
    """``("train/0001", "seg.png")`` of ``train/0001.seg.png``."""
    folder, slash, base = name.rpartition("/")
    stem, _, kind = base.partition(".")
    return (folder + slash + stem if stem else ""), kind.lower()


def _check(key: str, kind: str, last: str, seen: dict[str, set[str]]) -> None:
    if key != last and key in seen:
        raise ValueError(f"the files of sample {key!r} do not stand together: make the archive with tar --sort=name")
    kinds = seen.setdefault(key, set())
    if kind in kinds:
        raise ValueError(f"sample {key!r} has two files that end in .{kind}")
    kinds.add(kind)


def _check_end(file: BinaryIO, offset: int) -> None:
    """Whether there are the zeros that end an archive and nothing else: tarfile takes any nonsense for an end."""
    file.seek(offset)
    zeros = 0
    while block := file.read(tarfile.RECORDSIZE):
        if block.strip(b"\0"):
            raise ValueError("there is no valid header: the archive is damaged, or several were written into one file")
        zeros += len(block)
    if zeros < tarfile.BLOCKSIZE:
        raise EOFError("the archive ends without the zeros that end an archive: it was cut short")


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    content = file.read() if file else b""
    if len(content) != member.size:
        raise EOFError(f"it has {len(content):,} of {member.size:,} bytes: the archive was cut short")
    return content


def _decoded(kind: str, content: bytes) -> Any:
    ending = kind.rpartition(".")[2]
    if ending in _IMAGES:
        return _image(content)
    if ending == "npy":
        return parse_npy(io.BytesIO(content))
    if ending in _NUMBERS:
        return int(content)
    if ending == "txt":
        return content.decode()
    return msgspec.json.decode(content) if ending == "json" else content


def _image(content: bytes) -> Any:
    with needed("PIL.Image", "decoding images").open(io.BytesIO(content)) as image:
        return np.asarray(image.convert("RGB"))
