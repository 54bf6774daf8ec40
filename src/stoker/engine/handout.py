"""The hand-out: the batches of a run that a worker has made, opened one by one as the consumer asks for them."""

from __future__ import annotations

from stoker.collation.tensors import copied
from stoker.collation.tree import map_leaves
from stoker.engine.delivery import Delivery
from stoker.engine.units import Units
from stoker.errors import BugError
from stoker.interrupts import Hand, is_interrupt
from stoker.plan import Run
from stoker.workers import Answer, Failed, Made, Skipped, Transport


class HandOut:
    """Keeps the run that is due until the consumer has asked for each of its batches.

    Args:
        transport: That the batches have come by.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._run = Run(0, 0, 1)
        self._results: list[Made | Failed | None] = []  # of the run, batch by batch
        self._next = 0  # of these; those before it are None
        self._slot = self._worker = 0  # where they lie, and who has made them
        self._copy = False
        self._lost: tuple[Skipped, ...] = ()

    @property
    def is_empty(self) -> bool:
        return self._next == len(self._results)

    def set(self, run: Run, answer: Answer, lost: tuple[Skipped, ...], *, copy: bool) -> None:
        """The run whose turn it is, after all of the one before.

        ``lost``: what was left out of it. ``copy``: too many slots are held already.
        """
        if not self.is_empty or len(answer.results) != run.size:
            left = len(self._results) - self._next
            raise BugError(f"{run} has {len(answer.results)} results, and {left} of {self._run} are still to be taken")
        self._transport.lend(answer.slot, run.size)
        self._run, self._slot, self._worker, self._copy, self._lost = run, answer.slot, answer.worker, copy, lost
        self._results, self._next = list(answer.results), 0

    def clear(self) -> None:
        """Nobody will ask for what is left."""
        for _ in filter(None, self._results):
            self._transport.drop(self._slot)
        self._results, self._next = [], 0

    def open(self, units: Units, waited: int, hand: Hand[Delivery]) -> None:
        """Puts the next batch into a hand that is empty. An interrupt comes before that or after it."""
        nth, run, slot = self._next, self._run, self._slot
        result = self._results[nth]
        assert result is not None
        batch = units.batch(run.epoch, run.position + nth * run.stride)
        if isinstance(result, Failed):
            self._fail(Delivery(batch, error=result.error), hand)
            return
        try:
            data, lease = self._transport.open(slot, result.packed)
            data = map_leaves(copied, data) if self._copy else data
        except BaseException as error:  # no memory for a copy, or an object that can't be unpickled here, and ends us
            if is_interrupt(error):
                raise
            self._fail(Delivery(batch, error=error), hand)
            return
        skipped = result.skipped + self._lost if result.skipped or self._lost else ()
        delivery = Delivery(batch, data, result, None, skipped, self._worker, waited, result.samples)
        # At once: no call, so nothing comes in between.
        hand.held, lease.slot, self._results[nth], self._next = delivery, slot, None, nth + 1

    def _fail(self, delivery: Delivery, hand: Hand[Delivery]) -> None:
        hand.held, self._results[self._next], self._next = delivery, None, self._next + 1
        self._transport.drop(self._slot)
