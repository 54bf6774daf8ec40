"""A dataset whose samples say who they are, and some of which make trouble."""

from __future__ import annotations

import ctypes
import dataclasses
import os
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

_FACTOR = 1_000_003


@dataclass(frozen=True)
class Troubled:
    """Sample i is its index, a row that follows from it, and random numbers that follow from its batch.

    Trouble comes before anything random is drawn, so that the rest of the batch is the same wherever a sample is left
    out.
    """

    length: int
    width: int = 4
    slow: Mapping[int, float] = field(default_factory=dict)  # seconds
    failing: frozenset[int] = frozenset()
    deadly: frozenset[int] = frozenset()
    death: str = "exit"
    hanging: frozenset[int] = frozenset()
    hang_s: float = 3600.0

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> dict[str, Any]:
        if index in self.failing:
            raise ValueError(f"sample {index} fails")
        if index in self.deadly:
            self._die()
        if index in self.hanging:
            time.sleep(self.hang_s)
        if index in self.slow:
            time.sleep(self.slow[index])
        noise = random.random() + np.random.rand()
        return {"index": index, "row": rows(np.array([index]), self.width)[0], "noise": noise}

    def at(self, folder: Path) -> Troubled:
        """It needs no files."""
        return self

    def tamed(self) -> Troubled:
        """What the oracle reads: samples that kill or hang raise instead, and nobody sleeps."""
        bad = self.failing | self.deadly | self.hanging
        return dataclasses.replace(self, slow={}, failing=bad, deadly=frozenset(), hanging=frozenset())

    def _die(self) -> None:
        if self.death == "exit":
            os._exit(3)
        ctypes.string_at(0)


def rows(indices: np.ndarray, width: int) -> np.ndarray:
    """The rows of these samples."""
    return indices[:, None] * _FACTOR + np.arange(width)
