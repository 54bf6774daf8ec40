"""The hand-out: batches of a run that workers have made, opened one by one as the consumer asks for them."""

from __future__ import annotations

from typing import NamedTuple

from stoker.collation.tensors import copied
from stoker.collation.tree import map_leaves
from stoker.engine.delivery import Delivery
from stoker.engine.units import Units
from stoker.interrupts import Hand, is_interrupt
from stoker.plan import Run
from stoker.workers import Answer, Failed, Made, Skipped, Transport


class _Due(NamedTuple):
    """A batch whose turn it is, not yet looked at."""

    epoch: int
    position: int
    result: Made | Failed
    slot: int
    worker: int
    copy: bool
    lost: tuple[Skipped, ...]


class HandOut:
    """Keeps what is due, in order, until the consumer asks for it.

    Args:
        transport: That the batches have come by.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._due: list[_Due | None] = []
        self._next = 0  # of these; those before it are None

    @property
    def is_empty(self) -> bool:
        return self._next == len(self._due)

    def add(self, run: Run, answer: Answer, lost: tuple[Skipped, ...], *, copy: bool) -> None:
        """A run, whose turn it is. ``lost``: what was left out of it. ``copy``: too many slots are held already."""
        self._transport.lend(answer.slot, len(answer.results))
        for start, result in zip(run.positions, answer.results, strict=True):
            self._due.append(_Due(run.epoch, start, result, answer.slot, answer.worker, copy, lost))

    def clear(self) -> None:
        """Nobody will ask for what is left."""
        for due in filter(None, self._due):
            self._transport.drop(due.slot)
        self._due, self._next = [], 0

    def open(self, units: Units, waited: int, hand: Hand[Delivery]) -> None:
        """Puts the next batch into a hand that is empty. An interrupt comes before that or after it."""
        due = self._due[self._next]
        assert due is not None
        batch, result = units.batch(due.epoch, due.position), due.result
        if isinstance(result, Failed):
            self._fail(due, Delivery(batch, error=result.error), hand)
            return
        try:
            data, lease = self._transport.open(due.slot, result.packed)
            data = map_leaves(copied, data) if due.copy else data
        except BaseException as error:  # no memory for a copy, or an object that can't be unpickled here, and ends us
            if is_interrupt(error):
                raise
            self._fail(due, Delivery(batch, error=error), hand)
            return
        skipped = result.skipped + due.lost if result.skipped or due.lost else ()
        delivery = Delivery(batch, data, result, None, skipped, due.worker, waited, result.samples)
        # At once: no call, so nothing comes in between.
        hand.held, lease.slot, self._due[self._next], self._next = delivery, due.slot, None, self._next + 1

    def _fail(self, due: _Due, delivery: Delivery, hand: Hand[Delivery]) -> None:
        hand.held, self._due[self._next], self._next = delivery, None, self._next + 1
        self._transport.drop(due.slot)
