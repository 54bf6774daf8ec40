"""The orders of the epochs that are in use, of a plan that has an order of its own."""

from typing import Any

from stoker.plan.order import Order
from stoker.plan.ordering import Ordering

_KEPT = 2  # the epoch that is being read and the one that is being prefetched


class EpochOrders:
    """Works out the order of an epoch when it is first asked for. They are not pickled: others work them out again.

    Args:
        ordering: That of the plan.
        length: Samples in the dataset.
        shuffle: As the plan has it.
        seed: Of the plan.
    """

    def __init__(self, ordering: Ordering, length: int, shuffle: bool | int, seed: int) -> None:
        self._ordering = ordering
        self._plan = length, shuffle, seed
        self._known: dict[int, Order] = {}

    def __len__(self) -> int:
        """Of how many epochs it is known."""
        return len(self._known)

    def of(self, epoch: int) -> Order:
        known = self._known
        found = known.get(epoch)
        if found is None:  # threads may share a plan, and then find it twice
            found = known[epoch] = self._ordering.of_epoch(*self._plan, epoch)
            while len(known) > _KEPT:
                known.pop(next(iter(known)), None)
        return found

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_known": {}}
