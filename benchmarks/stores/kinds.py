"""What is stored: records of one size, made so that a reader can tell a whole one from a torn one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_STAMP = 8  # bytes: each record ends with its index, which is the label where there is one


@dataclass(frozen=True)
class Kind:
    name: str
    title: str
    size: int  # bytes a record
    batch: int  # records written, and read, at once
    batches: int

    @property
    def count(self) -> int:
        return self.batch * self.batches

    def pattern(self) -> np.ndarray:
        """A batch of records without their stamps: the same in every process."""
        return np.random.default_rng(7).integers(0, 256, (self.batch, self.size), np.uint8)

    def stamp(self, records: np.ndarray, batch: int) -> np.ndarray:
        """Turns a pattern, in place, into the records of a batch; returns their indices."""
        indices = np.arange(batch * self.batch, (batch + 1) * self.batch)
        records[:, -_STAMP:] = indices[:, None].view(np.uint8)
        return indices


@dataclass(frozen=True)
class Share:
    """The part-th of parts: every parts-th batch, so that the shares of two writers interleave."""

    part: int
    parts: int
    batches: int

    def of(self) -> range:
        return range(self.part, self.batches, self.parts)

    def indices(self, kind: Kind) -> np.ndarray:
        return np.concatenate([np.arange(batch * kind.batch, (batch + 1) * kind.batch) for batch in self.of()])


def stamps(records: np.ndarray) -> np.ndarray:
    """The index that each record says it has."""
    return np.ascontiguousarray(records[:, -_STAMP:]).view(np.int64)[:, 0]


KINDS = {
    kind.name: kind
    for kind in (
        Kind("images", "224 × 224 × 3 uint8, 150,528 bytes", 224 * 224 * 3, batch=32, batches=250),
        Kind("rows", "1,024 uint8 and a label, 1,032 bytes", 1024 + _STAMP, batch=256, batches=782),
    )
}
