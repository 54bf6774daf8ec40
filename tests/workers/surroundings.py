"""A dataset's module that looks around when it is imported, as torch does for CUDA."""

from __future__ import annotations

import os

AT_IMPORT = dict(os.environ)


class Looking:
    """Each sample says which process made it, and what a variable was in it: at import, and now."""

    def __init__(self, name: str, n: int = 40) -> None:
        self.name, self.n = name, n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, index: int) -> tuple[int, str | None, str | None]:
        return os.getpid(), AT_IMPORT.get(self.name, "unset"), os.environ.get(self.name, "unset")
