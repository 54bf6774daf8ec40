"""The folder of a cache: whose it is, and which generations are there.

about.json          the dataset that it is of, as text
lock                held by whoever makes or removes a generation
*.samples           one file a generation: two at most, the one that is read and the one that is being written
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from stoker.errors import CacheError
from stoker.stores.locks import Locks

FORMAT = 1
ENDING = ".samples"
ABOUT, LOCK = "about.json", "lock"
IN_USE = 0  # the byte of a generation's file that all who have it open hold
_GENERATIONS = 2


class About(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What ``about.json`` says."""

    stoker_cache: int
    dataset: str
    version: str
    codec: str


class Folder:
    """A cache's folder, which may not be there yet."""

    def __init__(self, path: str, about: About) -> None:
        self.path = path
        self._about = about

    def check(self) -> None:
        """
        Raises:
            CacheError: It is another dataset's, or no folder.
        """
        found = read_about(self.path)
        if found is not None:
            self._check(found)
        elif os.path.isdir(self.path):
            names = sorted(os.listdir(self.path))
            if set(names) - {LOCK} and not all(name.startswith(ABOUT) for name in set(names) - {LOCK}):
                raise CacheError(
                    f"{self.path} holds other files ({', '.join(names[:3])}): give Cache a folder of its own"
                )
        else:
            there = self.path
            while not os.path.exists(there):
                there = os.path.dirname(there)
            if not os.path.isdir(there):
                raise CacheError(f"{there} is a file: give Cache a folder, which is made if it is not there")

    def make(self) -> None:
        """Makes it, if it is not there, and writes down whose it is."""
        os.makedirs(self.path, exist_ok=True)
        with self.held():
            found = read_about(self.path)
            if found is None:
                self._write_about()
            else:
                self._check(found)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Nobody else makes or removes a generation meanwhile."""
        with holding(self.path):
            yield

    def make_room(self, name: str) -> bool:
        """Before generation ``name`` is made: removes others that nobody reads. Whether there is room for it then."""
        others = [other for other in generations(self.path) if other.name != name + ENDING]
        for other in others:
            if len(others) < _GENERATIONS:
                break
            if remove_unread(str(other)):
                others = [one for one in others if one != other]
        return len(others) < _GENERATIONS

    def remove(self, name: str) -> bool:
        """Removes a generation, unless somebody reads it. Whether it is gone."""
        try:
            with self.held():
                return remove_unread(os.path.join(self.path, name + ENDING))
        except FileNotFoundError:  # somebody has removed the cache
            return True

    def nbytes_beside(self, name: str) -> int:
        """Bytes of all its files but this generation."""
        return sum(nbytes(os.path.join(self.path, other)) for other in os.listdir(self.path) if other != name + ENDING)

    def _check(self, found: About) -> None:
        if found == self._about:
            return
        ours = self._about
        remedy = f"give Cache another folder, or remove this one with `stoker cache rm {self.path}`"
        if found.stoker_cache != ours.stoker_cache:
            raise CacheError(
                f"{self.path} is a cache of format {found.stoker_cache}, not {ours.stoker_cache}: {remedy}"
            )
        if found.codec != ours.codec:
            raise CacheError(
                f"{self.path} was written with codec={found.codec!r} and this Cache has codec={ours.codec!r}: {remedy}"
            )
        theirs = f"{found.dataset}, version {found.version or 'none'}"
        raise CacheError(
            f"{self.path} is the cache of another dataset. It is of\n  {theirs}\nand this one is\n"
            f"  {ours.dataset}, version {ours.version or 'none'}\nSo {remedy}"
        )

    def _write_about(self) -> None:
        """All of it or nothing: under another name first."""
        path = os.path.join(self.path, ABOUT)
        try:
            Path(path + ".new").write_bytes(msgspec.json.format(msgspec.json.encode(self._about), indent=2))
            os.replace(path + ".new", path)
        except OSError:
            Path(path + ".new").unlink(missing_ok=True)
            raise


def read_about(path: str) -> About | None:
    """
    Raises:
        CacheError: It is there, but damaged.
    """
    try:
        told = Path(path, ABOUT).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        return msgspec.json.decode(told, type=About)
    except msgspec.DecodeError as error:
        raise CacheError(
            f"{os.path.join(path, ABOUT)} is damaged ({error}): remove the cache with `stoker cache rm {path}`"
        ) from error


def generations(path: str) -> list[Path]:
    """The files of the generations, oldest first."""
    files = [file for file in Path(path).glob("*" + ENDING) if file.is_file()]
    return sorted(files, key=lambda file: (_mtime(file), file.name))


@contextlib.contextmanager
def holding(path: str) -> Iterator[None]:
    """Holds the folder's lock; not that of one that was removed meanwhile, with its folder."""
    name = os.path.join(path, LOCK)
    while True:
        fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            with Locks(fd).holding(0):
                if os.fstat(fd).st_nlink:
                    yield
                    return
        finally:
            os.close(fd)


def remove_unread(path: str) -> bool:
    """Removes a generation that nobody has open; whether it is gone. To be called while the folder is held."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        if not Locks(fd).try_take(IN_USE):
            return False
        os.unlink(path)
        return True
    finally:
        os.close(fd)


def nbytes(path: str) -> int:
    """What a file takes on disk; 0 if it is gone."""
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


def _mtime(file: Path) -> int:
    try:
        return file.stat().st_mtime_ns
    except FileNotFoundError:
        return 0
