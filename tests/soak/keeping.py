"""Samples that are kept: lives with a cache, and lives in which samples rotate."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stoker import Cache, Rotation

NOTHING, ROTATION, ON_DISK, CACHE = "nothing", "rotation", "rotation on disk", "cache"


@dataclass(frozen=True)
class Keep:
    """What is kept, and how much of it.

    Attributes:
        what: For the report.
        times: Uses of each sample, where they rotate.
        size: Samples that rotate at the same time.
        refresh_every: Epochs, of a cache.
        max_bytes: Of a cache.
    """

    what: str = NOTHING
    times: int = 2
    size: int | None = None
    refresh_every: int | None = None
    max_bytes: int | None = None

    def options(self, folder: Path) -> dict[str, Any]:
        """Those of the loader. Loaders with the same folder share a cache."""
        if self.what == NOTHING:
            return {}
        folder.mkdir(exist_ok=True)
        if self.what == CACHE:
            return {"cache": Cache(folder, self.refresh_every, self.max_bytes)}
        if self.what == ON_DISK:
            return {"rotation": Rotation(self.times, "disk", self.size, folder)}
        return {"rotation": Rotation(self.times, size=self.size)}


def any_keep(chance: random.Random, *kinds: str) -> Keep:
    """Nothing, as often as not; else one of these."""
    if chance.random() < 0.5:
        return Keep()
    return Keep(
        chance.choice(kinds),
        times=chance.choice([2, 2, 3]),
        size=chance.choice([None, 1, 5, 20]),
        refresh_every=chance.choice([None, 2]),
        max_bytes=chance.choice([None, None, 2**20]),
    )
