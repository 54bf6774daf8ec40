"""fsspec's settings, which a program may set for itself: where a bucket is, and who asks for it."""

from __future__ import annotations

import contextlib
import pickle
import sys
from dataclasses import dataclass


@dataclass(frozen=True)
class FileSettings:
    """Those of each file system, pickled; none if the program has none."""

    pickled: bytes = b""

    @classmethod
    def here(cls) -> FileSettings:
        found = getattr(sys.modules.get("fsspec.config"), "conf", None)
        with contextlib.suppress(Exception):  # an object that cannot travel: whoever needs it there is told by fsspec
            return cls(pickle.dumps(found) if found else b"")
        return cls()

    def apply(self) -> None:
        """Makes them those of this process, too."""
        if not self.pickled:
            return
        with contextlib.suppress(ImportError):  # it is not installed on that machine, and then nobody asks for them
            from fsspec import config

            config.conf.update(pickle.loads(self.pickled))
