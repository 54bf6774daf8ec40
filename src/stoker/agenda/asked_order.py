"""An order that code of the user's gives anew for each epoch: a function, or a sampler."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from stoker.errors import add_note
from stoker.plan import Given, Order
from stoker.plan.permutation import Positions


class AskedOrder:
    """Asks once an epoch, in the consumer's process, and remembers the answer for as long as the epoch is in use.

    It is no pure function of its fields, so workers never have it: they are told the indices of each batch.

    Args:
        ask: Gets the number of an epoch, and gives its indices.
        name: What the user knows it as, for messages.
    """

    def __init__(self, ask: Callable[[int], Any], name: str) -> None:
        self._ask, self._name = ask, name
        self._known: dict[int, Given] = {}  # of the epoch that was begun, and of the one that was asked for last
        self._begun: int | None = None

    @classmethod
    def of_sampler(cls, sampler: Any) -> AskedOrder:
        """Iterates it for each epoch, and tells it the epoch first if it wants to know."""
        return cls(_Iterated(sampler), type(sampler).__name__)

    def given(self, epoch: int) -> Given:
        """The indices of that epoch."""
        found = self._known.get(epoch)
        if found is None:
            try:
                indices = self._ask(epoch)
            except BaseException as error:
                add_note(error, f"stoker: {self._name} raised it, when it was asked for the order of epoch {epoch}")
                raise
            found = Given(_listed(indices), name=f"what {self._name} gave for epoch {epoch}")
            kept = {known: self._known[known] for known in self._known if known == self._begun}
            self._known = {**kept, epoch: found}
        return found

    def begin(self, epoch: int) -> None:
        """Asks for the order of that epoch, which is kept until the next one begins."""
        self.given(epoch)
        self._begun = epoch

    def positions(self, length: int, seed: int, epoch: int) -> int:
        return self.given(epoch).positions(length, seed, epoch)

    def of_epoch(self, length: int, shuffle: bool | int, seed: int, epoch: int) -> Order:
        return _OrderOfEpoch(self, (length, shuffle, seed, epoch))

    def fingerprint(self, epoch: int | None) -> str:
        """Of the indices in an epoch; between two, that it is somebody's to ask."""
        return "asked for anew in each epoch" if epoch is None else self.given(epoch).fingerprint(epoch)


class _OrderOfEpoch:
    """The order of an epoch, as it was asked for last."""

    def __init__(self, asked: AskedOrder, plan: tuple[int, bool | int, int, int]) -> None:
        self._asked, self._plan = asked, plan

    def indices(self, start: int, stop: int) -> Sequence[int]:
        return self._now().indices(start, stop)

    def at(self, positions: Positions) -> Positions:
        return self._now().at(positions)

    def _now(self) -> Order:
        return self._asked.given(self._plan[-1]).of_epoch(*self._plan)


class _Iterated:
    """A sampler as a function of the epoch.

    One that cannot be told the epoch is iterated once for each epoch that was left out, so that a generator of its own
    has drawn as much as it would have in a run from the start.
    """

    def __init__(self, sampler: Any) -> None:
        self._sampler = sampler
        self._next = 0  # epoch, in a run from the start

    def __call__(self, epoch: int) -> list[Any]:
        sampler, set_epoch = self._sampler, getattr(self._sampler, "set_epoch", None)
        if callable(set_epoch):
            set_epoch(epoch)
            return list(sampler)
        for _ in range(self._next, epoch):
            deque(sampler, maxlen=0)
        found = list(sampler)
        self._next = max(self._next, epoch + 1)
        return found


def _listed(indices: Any) -> Any:
    """What numpy can make an array of."""
    return indices if hasattr(indices, "__array__") or not isinstance(indices, Iterable) else list(indices)
