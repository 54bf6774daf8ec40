"""A dataset's module that looks around when it is imported, as torch does for CUDA."""

from __future__ import annotations

import os
import sqlite3
import threading
from typing import ClassVar

AT_IMPORT = dict(os.environ)


class Looking:
    """Each sample says which process made it, and what a variable was in it: at import, and now."""

    def __init__(self, name: str, n: int = 40) -> None:
        self.name, self.n = name, n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, index: int) -> tuple[int, str | None, str | None]:
        return os.getpid(), AT_IMPORT.get(self.name, "unset"), os.environ.get(self.name, "unset")


ROOT = "unset"  # as a training program may set it


def set_root() -> None:
    """An ``init=``: it is called once in a worker, before the dataset is made."""
    global ROOT
    assert ROOT == "unset" or threading.current_thread() is not threading.main_thread()
    ROOT = "/data"


class Rooted:
    """Each sample says what the global was when the dataset was made, and what it is."""

    def __init__(self, n: int = 40) -> None:
        self.n, self.made_in = n, ROOT

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, index: int) -> tuple[int, str, str]:
        return os.getpid(), self.made_in, ROOT


class Connected:
    """A connection that is of use only in the thread that has made it, as those of sqlite3 are."""

    ended_in: ClassVar[list[tuple[int, int]]] = []

    def __init__(self, n: int = 40) -> None:
        self.connection = sqlite3.connect(":memory:")
        self.connection.execute("create table rows (value integer)")
        self.connection.executemany("insert into rows values (?)", [(i,) for i in range(n)])
        self.made_in = threading.get_ident()

    def __len__(self) -> int:
        return int(self.connection.execute("select count(*) from rows").fetchone()[0])

    def __getitem__(self, index: int) -> tuple[int, int]:
        return self.connection.execute("select value from rows where rowid = ?", (index + 1,)).fetchone()[0]

    def __del__(self) -> None:
        self.connection.close()
        Connected.ended_in.append((self.made_in, threading.get_ident()))
