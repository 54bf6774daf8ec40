"""The number of an open file, known to all who use it."""

from __future__ import annotations

import os


class Descriptor:
    """Whoever writes by it asks for its ``number`` each time: once it is closed, that of old may be another file's."""

    def __init__(self, number: int) -> None:
        self.number = number

    @property
    def is_open(self) -> bool:
        return self.number >= 0

    def close(self) -> None:
        """May be called twice."""
        if self.number >= 0:
            os.close(self.number)
            self.number = -1
