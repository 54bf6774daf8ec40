"""What a worker asks of a store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from stoker.plan import Batch, Plan
from stoker.stores.shared_samples import Collected


class Store(Protocol):
    """Kept samples, as one worker has them open. Used by one thread, but for ``abandon``."""

    def seed_of(self, epoch: int, index: int) -> int:
        """For what is random in a sample, so that it is the same whoever makes it, and however often."""

    def keys(self, batch: Batch, indices: Sequence[int]) -> Sequence[int]:
        """What the batch's samples are known by here, one for each of its indices."""

    def fetch(self, epoch: int, keys: Sequence[int], make: Callable[[int], Any], tick: Callable[[], None]) -> Collected:
        """The samples of these keys; see ``shared_samples.collect``."""

    def finish(self, epoch: int, keys: Sequence[int]) -> bool:
        """The batch has been written. False: it may hold what was overwritten or cut off, so make it again."""

    def abandon(self) -> None:
        """From another thread: this worker is given up, and others may make what it has claimed."""

    def close(self) -> None:
        """Closes its files. May be called twice."""


class OpenStore(Protocol):
    """Opens a store in a worker."""

    def __call__(self, plan: Plan, file: int, *, copies: bool, tell: Callable[[str], None]) -> Store:
        """
        Args:
            plan: With the dataset's length.
            file: What the consumer has made for it; see ``Rotation.new_file``.
            copies: The arrays that it gives are the caller's own, to write into.
            tell: Called with what the user should know.
        """
