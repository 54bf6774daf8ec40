"""The folder of a cache: whose it is, and which generations are there.

about.json          the dataset that it is of, as text
lock                held by whoever makes or removes a generation
*.samples           one file a generation: two at most, the one that is read and the one that is being written

Who may read and write them, and which links are followed (none): see ``private_files``.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import msgspec

from stoker.errors import CacheError
from stoker.private_files import OpenFolder, UnsafeFile, check_file, check_folder
from stoker.stores.locks import Locks

# 1: the fingerprint left parts of large arrays out, and kept secrets. 2: codec="pickle" named classes by former names.
FORMAT = 3
ENDING = ".samples"
ABOUT, LOCK = "about.json", "lock"
IN_USE = 0  # the byte of a generation's file that all who have it open hold
_GENERATIONS = 2
_ROUNDS = 100_000  # of hashing: whoever tries passwords needs 20 ms for each


class About(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What ``about.json`` says. ``secrets``: what the dataset's redacted arguments are known by, if it has any."""

    stoker_cache: int
    dataset: str
    version: str
    codec: str
    secrets: str = ""


class CacheFolder:
    """A cache's folder, which may not be there yet.

    Args:
        path: Of the folder, or of the user's link to it.
        about: Whose it is.
        secrets: Of the dataset, as ``fingerprint.Described`` has them.
    """

    def __init__(self, path: str, about: About, secrets: bytes = b"") -> None:
        self.path = path
        self._about = about
        self._secrets = secrets

    def check(self) -> None:
        """
        Raises:
            CacheError: It is another dataset's or another user's, or no folder.
        """
        check_safe(self.path)
        found = read_about(self.path)
        if found is not None:
            self._check(found)
        elif os.path.isdir(self.path):
            names = sorted(os.listdir(self.path))
            if set(names) - {LOCK} and not all(name.startswith(ABOUT) for name in set(names) - {LOCK}):
                raise CacheError(
                    f"{self.path} holds other files ({', '.join(names[:3])}): pass Cache a folder of its own"
                )
        else:
            there = self.path
            while not os.path.exists(there):
                there = os.path.dirname(there)
            if not os.path.isdir(there):
                raise CacheError(f"{there} is a file: pass Cache a folder, which is made if it is not there")

    def make(self) -> None:
        """Makes it, if it is not there, and writes down whose it is."""
        os.makedirs(self.path, 0o700, exist_ok=True)
        check_safe(self.path)
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
        others = [other for other in generation_files(self.path) if other.name != name + ENDING]
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
        ours = self._about
        if msgspec.structs.replace(found, secrets="") == ours and self._are_ours(found.secrets):
            return
        remedy = f"pass Cache another folder, or remove this one with `stoker cache rm {self.path}`"
        if found.stoker_cache != ours.stoker_cache:
            raise CacheError(
                f"{self.path} is a cache of format {found.stoker_cache}, not {ours.stoker_cache}: {remedy}"
            )
        if found.codec != ours.codec:
            raise CacheError(
                f"{self.path} was written with codec={found.codec!r} and this Cache has codec={ours.codec!r}: {remedy}"
            )
        theirs = f"{found.dataset}, version {found.version or 'none'}"
        if theirs == f"{ours.dataset}, version {ours.version or 'none'}":
            raise CacheError(
                f"{self.path} is the cache of another dataset. Both are\n  {theirs}\nbut what is redacted there "
                f"(secrets, or what looks like one) is not the same. So {remedy}"
            )
        raise CacheError(
            f"{self.path} is the cache of another dataset. It is of\n  {theirs}\nand this one is\n"
            f"  {ours.dataset}, version {ours.version or 'none'}\nSo {remedy}"
        )

    def _write_about(self) -> None:
        """All of it or nothing: under another name first, which nobody can know. To be called while it is held."""
        about = msgspec.structs.replace(self._about, secrets=_salted(self._secrets, secrets.token_hex(16)))
        new = f"{ABOUT}.{secrets.token_hex(8)}"
        with OpenFolder.at(self.path) as folder:
            _remove_unfinished(folder)
            fd = folder.make(new, os.O_WRONLY)
            try:
                with os.fdopen(fd, "wb") as file:
                    file.write(msgspec.json.format(msgspec.json.encode(about), indent=2))
                os.replace(new, ABOUT, src_dir_fd=folder.fd, dst_dir_fd=folder.fd)
            except BaseException:
                _remove_unfinished(folder)
                raise

    def _are_ours(self, told: str) -> bool:
        """Whether what a folder's secrets are known by is of these."""
        return secrets.compare_digest(told, _salted(self._secrets, told.partition(":")[0]))


def _salted(digest: bytes, salt: str) -> str:
    """What secrets can be compared by, and not be found."""
    if not digest:
        return ""
    return f"{salt}:{hashlib.pbkdf2_hmac('sha256', digest, salt.encode(), _ROUNDS).hex()}"


def _remove_unfinished(folder: OpenFolder) -> None:
    """What whoever was killed in the middle of writing has left there."""
    for name in unfinished(os.listdir(folder.fd)):
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=folder.fd)


def unfinished(names: list[str]) -> list[str]:
    return [name for name in names if name.startswith(ABOUT + ".")]


def check_safe(path: str) -> None:
    """
    Raises:
        CacheError: Others may exchange the files of the folder, or have put something there that is no file of ours.
    """
    try:
        folder = OpenFolder.at(path)
    except (FileNotFoundError, NotADirectoryError):
        return
    except PermissionError as error:
        raise CacheError(f"{path} cannot be opened ({error.strerror}): pass Cache a folder of your own") from error
    with folder:
        why = check_folder(os.fstat(folder.fd))
        if why is not None:
            raise CacheError(f"{path} is not a safe folder for a cache: {why}; or pass Cache a folder of your own")
        for name in os.listdir(folder.fd):
            if name in (ABOUT, LOCK) or name.endswith(ENDING):
                with contextlib.suppress(FileNotFoundError), safely(path):
                    found = os.stat(name, dir_fd=folder.fd, follow_symlinks=False)
                    check_file(os.path.join(path, name), found, anybodys=folder.is_shared)


@contextlib.contextmanager
def safely(path: str) -> Iterator[None]:
    """A file that is not ours is an error of the cache in the folder ``path``."""
    try:
        yield
    except UnsafeFile as error:
        raise CacheError(
            f"{error.filename} is not what Stoker has written there: {error.strerror}. Nothing was read from it or "
            f"written to it. Remove the cache with `stoker cache rm {path}`, or pass Cache another folder"
        ) from error


def open_file(path: str, flags: int, *, make: bool = False, anybodys: bool = False) -> int:
    """A descriptor of a file of a cache, as ``private_files`` opens them. ``anybodys``: also if it is another user's.

    Raises:
        CacheError: It is a link, no regular file, or somebody else's.
    """
    where, name = os.path.split(path)
    with safely(where), OpenFolder.at(where, anybodys=anybodys) as folder:
        return folder.open_or_make(name, flags) if make else folder.open(name, flags)


def read_about(path: str, *, anybodys: bool = False) -> About | None:
    """
    Raises:
        CacheError: It is there, but damaged, or cannot be read.
    """
    file = os.path.join(path, ABOUT)
    try:
        with os.fdopen(open_file(file, os.O_RDONLY, anybodys=anybodys), "rb") as opened:
            told = opened.read()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except PermissionError as error:
        raise CacheError(f"{file} cannot be read ({error.strerror}): pass Cache a folder of your own") from error
    try:
        return msgspec.json.decode(told, type=About)
    except msgspec.DecodeError as error:
        raise CacheError(f"{file} is damaged ({error}): remove the cache with `stoker cache rm {path}`") from error


def generation_files(path: str) -> list[Path]:
    """The files of the generations, oldest first."""
    files = [file for file in Path(path).glob("*" + ENDING) if file.is_file() and not file.is_symlink()]
    return sorted(files, key=lambda file: (_mtime(file), file.name))


@contextlib.contextmanager
def holding(path: str, *, anybodys: bool = False) -> Iterator[None]:
    """Holds the folder's lock; not that of one that was removed meanwhile, with its folder."""
    name = os.path.join(path, LOCK)
    while True:
        fd = open_file(name, os.O_RDWR, make=True, anybodys=anybodys)
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
        fd = open_file(path, os.O_RDWR)
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
        return os.lstat(path).st_size
    except FileNotFoundError:
        return 0


def _mtime(file: Path) -> int:
    try:
        return file.lstat().st_mtime_ns
    except FileNotFoundError:
        return 0
