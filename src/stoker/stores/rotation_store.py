"""The samples that rotate, as a worker sees them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stoker.plan import Batch, Plan, rotation_of, sample_seed
from stoker.stores.record_codec import RecordDecoder, RecordEncoder
from stoker.stores.rotation_file import RotationFile
from stoker.stores.shared_samples import Collected, NoSharedSamples, collect

_NO_ROOM = (
    "the rotation: there is no room for more samples, so some are made again for each use. "
    "Pass a smaller Rotation(size=...)"
)

_KEYS = 2**62  # then they begin again at 0: with the numbers of an epoch, they stay within 64 bits


def open_rotation(ahead: int, plan: Plan, file: int, *, copies: bool, tell: Callable[[str], None]) -> RotationStore:
    """Opens it in a worker. ``ahead``: batches that may be under way at the same time."""
    per_epoch = rotation_of(plan, 0).count
    rotating = min(plan.rotating or per_epoch, per_epoch)
    entry_count = 2 * rotating + ahead * (plan.batch_size or 1)
    decoder = RecordDecoder("pickle", copies=copies)  # of this very loader, so nobody else can have written it
    try:
        opened = RotationFile(file, entry_count, RecordEncoder("pickle"), decoder, lambda: tell(_NO_ROOM))
    except MemoryError:
        tell(_NO_ROOM)
        return RotationStore(plan, _NoRotationFile())
    return RotationStore(plan, opened)


class _NoRotationFile(NoSharedSamples):
    """Where there is not even room for its tables."""

    def begin(self) -> None:
        pass

    def count(self, keys: Sequence[int], uses: Any, uses_in_all: Any) -> bool:
        return True

    def abandon(self) -> None:
        pass

    def close(self) -> None:
        pass


class RotationStore:
    """The samples that rotate, as one worker sees them."""

    def __init__(self, plan: Plan, file: RotationFile | _NoRotationFile) -> None:
        self._plan, self._file = plan, file
        self._per_epoch = rotation_of(plan, 0).count

    def seed_of(self, epoch: int, index: int) -> int:
        return sample_seed(self._plan.seed, epoch, index)

    def keys(self, batch: Batch, indices: Sequence[int]) -> list[int]:
        """The numbers of a batch's samples, counted through all epochs."""
        numbers = rotation_of(self._plan, batch.epoch).numbers(batch.start, batch.stop)
        keys: list[int] = (numbers + self._first_key(batch.epoch)).tolist()
        return keys

    def fetch(self, epoch: int, keys: Sequence[int], make: Callable[[int], Any], tick: Callable[[], None]) -> Collected:
        self._file.begin()
        return collect(self._file, keys, make, tick)

    def finish(self, epoch: int, keys: Sequence[int]) -> bool:
        unique, uses = np.unique(np.asarray(keys, dtype=np.int64), return_counts=True)
        in_all = rotation_of(self._plan, epoch).uses(unique - self._first_key(epoch))
        return self._file.count(unique.tolist(), uses, in_all)

    def _first_key(self, epoch: int) -> int:
        return epoch * self._per_epoch % _KEYS

    def abandon(self) -> None:
        self._file.abandon()

    def close(self) -> None:
        self._file.close()
