"""Who has changed the file of a generation: its workers, or somebody else."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from stoker.stores.descriptor import Descriptor
from stoker.stores.verified_samples import VerifiedSamples


class CacheChanges:
    """Trusts what this worker has checked for as long as nobody but workers changes the file.

    Args:
        file: That of the generation.
        header: As all who map it see it.
        count: Samples.
    """

    def __init__(self, file: Descriptor, header: Any, count: int) -> None:
        self._file, self._header = file, header
        self._longest = 0  # the file, as far as this worker knows
        self._verified = VerifiedSamples(count, int(header["tail"]), int(header["first"]))

    def look(self) -> None:
        """Before this worker changes or reads anything: whether somebody has changed the file who is no worker."""
        time = self.time()
        self._verified.look(time, int(self._header["changes"]), int(self._header["discarded"]))

    def note(self) -> None:
        """This worker has changed the file. To be called with the mutex, as others do it too."""
        self._header["changes"] += np.uint32(1)
        self._verified.note(self.time(), int(self._header["changes"]))

    def time(self) -> int:
        """Of the last change of the file. If it has become shorter, all are to look closely."""
        status = os.fstat(self._file.number)
        if status.st_size < self._longest:
            self._header["discarded"] += np.uint32(1)
        self._longest = status.st_size
        return status.st_mtime_ns

    def unchecked(self, keys: Sequence[int], rows: Any, within: Any) -> list[int]:
        """Which of these, by number, are to be checked; ``within``: those of them that lie within the file."""
        found: list[int] = (~self._verified.known(keys, rows, within)).nonzero()[0].tolist()
        return found

    def checked(self, key: int) -> None:
        """It is what was written."""
        self._verified.add(key)
