"""The folder that chunks are written to: one split's own, and one process's at a time."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from stoker.splitting import manifest
from stoker.splitting.manifest import Manifest

_LIMITS = ("size", "count")


def check(folder: Path) -> None:
    """
    Raises:
        ValueError: It cannot be a folder of chunks. One that is not there yet can.
    """
    for path in (folder, *folder.parents):
        if path.is_dir():
            break
        if path.exists():
            raise ValueError(f"{path} is a file: pass split a folder, which is made if it is missing")
    if folder.is_dir() and manifest.read(folder) is None:
        others = sorted(name for name in os.listdir(folder) if not name.startswith("."))
        if others:
            raise ValueError(
                f"{folder} holds files of another's ({', '.join(others[:3])}): pass split a folder of its own"
            )


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Makes it if it is missing. Nobody else writes to it meanwhile; the kernel forgets that if this process dies."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        import fcntl
    except ImportError:  # Windows, which opens no folders: two at a time are the user's to avoid
        yield
        return
    fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ValueError(f"another process splits into {folder}: wait for it, or end it") from error
        except OSError:  # some network file systems lock no folders
            pass
        yield
    finally:
        os.close(fd)


def resumed(folder: Path, wanted: Manifest) -> Manifest:
    """How far the split is that ``wanted`` begins; written down if it is not begun yet.

    Raises:
        ValueError: What is there is of another split, of a file that has changed, or not all there.
    """
    found = manifest.read(folder)
    if found is None:
        manifest.write(folder, wanted)
        return wanted
    if found.source != wanted.source:
        raise ValueError(f"{folder} holds chunks of {found.source}, not of {wanted.source}: {manifest.remedy(folder)}")
    if (found.size, found.count) != (wanted.size, wanted.count):
        theirs, ours = (
            " ".join(f"{name}={getattr(one, name)}" for name in _LIMITS if getattr(one, name) is not None)
            for one in (found, wanted)
        )
        raise ValueError(f"{folder} was begun with {theirs}, not with {ours}: {manifest.remedy(folder)}")
    if (found.source_size, found.source_version) != (wanted.source_size, wanted.source_version):
        raise ValueError(
            f"{found.source} has changed since {folder} was begun: it had {found.source_size} bytes and "
            f"{found.source_version}, and has {wanted.source_size} and {wanted.source_version}. "
            f"So {manifest.remedy(folder)}"
        )
    _check_all_there(folder, found)
    return found


def with_chunk(before: Manifest, chunk: manifest.Chunk, offset: int) -> Manifest:
    return msgspec.structs.replace(before, chunks=(*before.chunks, chunk), next=offset)


def _check_all_there(folder: Path, found: Manifest) -> None:
    there = set(os.listdir(folder))
    gone = [chunk.name for chunk in found.chunks if chunk.name not in there]
    if gone:
        raise ValueError(f"{folder} lacks {gone[0]}, which was finished: {manifest.remedy(folder)}")
