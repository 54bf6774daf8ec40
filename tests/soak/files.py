"""The same samples out of files, some of which cannot be read."""

from __future__ import annotations

import dataclasses
import json
import random
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from stoker import Chunks
from tests.soak.dataset import rows


@dataclass(frozen=True)
class TroubledFiles:
    """``Chunks`` whose samples are those of ``Troubled``; here trouble is a file's.

    Attributes:
        sizes: How many samples each file has.
        interleave: As of ``Chunks``.
        across_chunks: As of ``Chunks``.
    """

    sizes: tuple[int, ...]
    width: int = 4
    interleave: int = 4
    across_chunks: bool = True
    slow: Mapping[int, float] = field(default_factory=dict)  # seconds
    failing: frozenset[int] = frozenset()
    deadly: frozenset[int] = frozenset()  # none: all files that are read together would be left out
    hanging: frozenset[int] = frozenset()  # likewise

    def at(self, folder: Path) -> Chunks:
        """The files, written if they are not there."""
        if not folder.exists():
            folder.mkdir()
            ends = np.cumsum(self.sizes).tolist()
            for number, (size, end) in enumerate(zip(self.sizes, ends, strict=True)):
                (folder / f"{number:03}").write_text(json.dumps([number, end - size, end]))
        return Chunks(folder, self.read, self.interleave, self.across_chunks)

    def read(self, path: str) -> Iterator[dict[str, Any]]:
        number, start, stop = json.loads(Path(path).read_text())
        if number in self.failing:
            raise ValueError(f"file {number} fails")
        if number in self.slow:
            time.sleep(self.slow[number])
        for index in range(start, stop):
            noise = random.random() + np.random.rand()
            yield {"index": index, "row": rows(np.array([index]), self.width)[0], "noise": noise}

    def tamed(self) -> TroubledFiles:
        """What the oracle reads: nobody sleeps."""
        return dataclasses.replace(self, slow={})
