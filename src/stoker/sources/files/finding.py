"""Finding files: what a path, a pattern, a folder or a URL stands for."""

from __future__ import annotations

import glob
import os
import re
import stat
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import xxhash

from stoker.sources.files.opening import file_system, is_url, missing, scheme, shown, without_secrets

_MAGIC = re.compile(rb"[*?\[]")
# What file systems call the things that change with a file, in lower case.
_STAMPS = (
    "created",
    "crc",
    "crc32c",
    "date_time",
    "generation",
    "last_modified",
    "lastmodified",
    "md5hash",
    "modified",
    "mtime",
    "updated",
)


class FoundFile(NamedTuple):
    """A file: its path, how much of it is not part of its name in the entry, its size and the stamp of its state."""

    path: bytes
    root: int
    size: int
    stamp: int


def find(entry: str) -> Iterator[FoundFile]:
    """The files of one entry, sorted by path."""
    if not entry:
        raise ValueError("a path is empty: pass '.' for the folder this process runs in")
    if is_url(entry):
        return _find_url(entry)
    return _find_local(os.fsencode(os.path.abspath(entry)))


def _find_local(path: bytes) -> Iterator[FoundFile]:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        if not _MAGIC.search(path):
            raise _nowhere(os.fsdecode(path)) from None
        return _glob(path)
    if stat.S_ISDIR(status.st_mode):
        folder = path.rstrip(b"/")  # "/" itself becomes empty
        return _walk(folder, len(folder) + 1, ())
    return iter([_found(path, path.rfind(b"/") + 1, status)])


def _found(path: bytes, root: int, status: os.stat_result) -> FoundFile:
    return FoundFile(path, root, status.st_size, status.st_mtime_ns)


def _glob(pattern: bytes) -> Iterator[FoundFile]:
    magic = _MAGIC.search(pattern)
    root = pattern.rfind(b"/", 0, magic.start() if magic else None) + 1
    for path in sorted(glob.iglob(pattern, recursive=True)):
        status = os.stat(path)
        if stat.S_ISREG(status.st_mode):
            yield _found(path, root, status)


def _walk(folder: bytes, root: int, above: tuple[tuple[int, int], ...]) -> Iterator[FoundFile]:
    """One folder and what is below it. A link back to one of the folders ``above`` it is not followed."""
    status = os.stat(folder or b"/")
    identity = status.st_dev, status.st_ino
    if identity in above:
        return
    with os.scandir(folder or b"/") as entries:
        # A folder sorts as its files do, which have a slash behind its name.
        names = sorted(e.name + b"/" if e.is_dir() else e.name for e in entries if not _is_hidden(e.name))
    for name in names:
        path = folder + b"/" + name
        if name.endswith(b"/"):
            yield from _walk(path[:-1], root, (*above, identity))
            continue
        status = os.stat(path)
        if stat.S_ISREG(status.st_mode):
            yield _found(path, root, status)


def _is_hidden(name: bytes) -> bool:
    """Whether it is no data: hidden, or a note of who wrote the folder (``_SUCCESS``, ``_metadata``)."""
    return name.startswith((b".", b"_"))


def _find_url(url: str) -> Iterator[FoundFile]:
    prefix, inmost, behind = _parts(url)
    system, name = _telling(url, lambda: file_system(url))
    infos: dict[str, Any] = _telling(url, lambda: _infos(system, name, inmost))
    # What stands before the names that the file system uses: the scheme, and for some of them the host.
    before = inmost[: -len(name)] if name and inmost.endswith(name) else scheme(inmost)
    magic = _MAGIC.search(name.encode()) if name not in infos else None
    folder = name[: magic.start()].rpartition("/")[0] if magic else name.rstrip("/")
    hidden = "." if magic else (".", "_")
    for path, info in sorted(infos.items()):
        below = os.path.basename(path) if path == name else path.removeprefix(folder).lstrip("/")
        if info.get("type") == "directory" or (path != name and _is_below_hidden(below, hidden)):
            continue
        whole = prefix + ("" if "://" in path else before) + path
        size = info.get("size")
        root = len(whole.encode()) - len(below.encode())
        yield FoundFile((whole + behind).encode(), root, -1 if size is None else int(size), _stamp(info))


def _is_below_hidden(path: str, hidden: str | tuple[str, ...]) -> bool:
    return any(part.startswith(hidden) for part in path.split("/"))


def _parts(url: str) -> tuple[str, str, str]:
    """``("simplecache::", "zip://*.csv", "::s3://bucket/b.zip")``: the middle one names the files."""
    parts = url.split("::")
    at = next((i for i, part in enumerate(parts) if "://" in part), 0)
    start, mark, name = parts[at].partition("://")
    before, behind = "".join(f"{part}::" for part in parts[:at]), "".join(f"::{part}" for part in parts[at + 1 :])
    return before, start + mark + name.rstrip("/"), behind


def _infos(system: Any, name: str, inmost: str) -> dict[str, Any]:
    system.invalidate_cache()  # of what it listed before: others may have written since
    is_web = inmost.startswith(("http://", "https://"))  # where "?" begins a query
    if "*" in name or "[" in name or ("?" in name and not is_web):
        return dict(system.glob(name, detail=True))
    if name.rstrip("/") and not name.endswith("/"):
        info = system.info(name)
        if info.get("type") != "directory":
            return {name: info}
    return dict(system.find(name, detail=True))


def _telling(url: str, ask: Callable[[], Any]) -> Any:
    """What the file system answers; its errors may hold secrets, and are told without them."""
    try:
        return ask()
    except Exception as error:
        reason = _reason(error)
        if isinstance(reason, FileNotFoundError):
            raise _nowhere(url) from None
        kind = next((kind for kind in (PermissionError, ImportError, ValueError) if isinstance(reason, kind)), OSError)
        raise kind(f"cannot list {shown(url)}: {type(reason).__name__}: {without_secrets(str(reason))}") from None


def _reason(error: BaseException) -> BaseException:
    """What went wrong: fsspec says "not found" also of web servers that do not answer, or refuse."""
    cause = error.__cause__
    is_answer = isinstance(cause, OSError) or hasattr(cause, "status")
    return cause if isinstance(error, FileNotFoundError) and cause is not None and is_answer else error


def _nowhere(path: str) -> FileNotFoundError:
    error = missing(path)
    error.add_note("files= takes paths, folders, patterns such as 'data/*.jsonl', and URLs such as 's3://bucket/data'")
    return error


def _stamp(info: dict[str, Any]) -> int:
    """A number that changes when the file does, as far as its file system tells."""
    told = {key.lower(): value for key, value in info.items() if value is not None}
    etag = told.get("etag")
    marks = [etag] if etag else [f"{key}={told[key]}" for key in _STAMPS if key in told]
    if not marks:
        return 0
    return xxhash.xxh3_64_intdigest("\n".join(map(str, marks)).encode()) - (1 << 63) or 1
