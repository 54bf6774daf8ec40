"""What an epoch owes, checked off as it comes: in order, or as a multiset where order does not matter."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from stoker.testing.comparison import difference


def kept(batch: Any) -> Any:
    """A copy that shares no memory with the loader."""
    return copy.deepcopy(batch)


class Due:
    """The batches of one epoch that are still to come.

    Args:
        batches: The whole epoch, in the order of the plan.
        epoch: Its number, for messages.
        in_order: They must come in that order.
    """

    def __init__(self, batches: list[Any], *, epoch: int, in_order: bool) -> None:
        self._batches = batches
        self._left = list(range(len(batches)))
        self._in_order = in_order
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self._left)

    def __copy__(self) -> Due:
        other = Due(self._batches, epoch=self.epoch, in_order=self._in_order)
        other._left = list(self._left)
        return other

    def take(self, batch: Any, who: str) -> None:
        """Checks off one batch that ``who`` has delivered.

        Raises:
            AssertionError: It is not due: it differs, was lost or repeated, or is one too many.
        """
        if not self._left:
            raise AssertionError(f"{who}: epoch {self.epoch} goes on after its last batch{self._recognized(batch)}")
        for position in self._left[:1] if self._in_order else self._left:
            if difference(batch, self._batches[position]) is None:
                self._left.remove(position)
                return
        first = self._left[0]
        found = difference(batch, self._batches[first])
        what = f"batch {first}" if self._in_order else f"a batch that is none of the {len(self._left)} still due"
        raise AssertionError(f"{who}: epoch {self.epoch}, {what}: {found}{self._recognized(batch)}")

    def take_all(self, batches: Iterable[Any], who: str) -> None:
        """The rest of the epoch, and no more and no less."""
        for batch in batches:
            self.take(batch, who)
        self.finish(who)

    def finish(self, who: str) -> None:
        """The epoch is over.

        Raises:
            AssertionError: Something is still due.
        """
        if self._left:
            positions = ", ".join(map(str, self._left[:5])) + (", ..." if len(self._left) > 5 else "")
            raise AssertionError(
                f"{who}: epoch {self.epoch} ended with {len(self._left)} of {len(self._batches)} batches lost: "
                f"{'batch' if len(self._left) == 1 else 'batches'} {positions}"
            )

    def _recognized(self, batch: Any) -> str:
        """Which batch of this epoch it is, if any: that tells what became of the one that was due."""
        for position, other in enumerate(self._batches):
            if difference(batch, other) is None:
                if position not in self._left:
                    return f". It is batch {position} of this epoch once more: that was delivered before"
                return f". It is batch {position} of this epoch: those before it were lost, or come later"
        return ""
