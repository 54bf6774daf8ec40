"""Windows of samples, as the engine asks for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from stoker.agenda.agenda import Take
from stoker.agenda.asked_order import AskedOrder
from stoker.agenda.chunks.opening import Forms, Opening
from stoker.agenda.packed.windows import Windows
from stoker.engine import Delivery
from stoker.plan import Batch, ChunkCursor, Mixture, Run, SentBatches, again


class PackedUnits:
    """A unit is a window: workers work out its samples themselves, and get nothing but its position.

    Where code of the user's gives the order, or the weights of a mixture were set, it is as with batches: see
    ``IndexedUnits``.
    """

    interrupt: BaseException | None = None  # nothing of the user's is called here
    longest_run = 1

    def __init__(self, windows: Windows) -> None:
        self.sought = ChunkCursor()  # where they begin
        self.issued = 0, 0  # epoch and place after the last window that was handed out
        self.has_told = windows.plan.order  # what workers have
        self._windows = windows

    @property
    def length(self) -> int:
        return self._windows.plan.length

    @property
    def order(self) -> AskedOrder | None:
        """If it is asked for, epoch by epoch."""
        order = self._windows.plan.order
        return order if isinstance(order, AskedOrder) else None

    def runs(self, size: Callable[[], int]) -> Iterator[Run | None]:
        """First those, once more, whose loose rows wait."""
        sought, count = self.sought, self._windows.count
        epoch = sought.epoch
        yield from (self._run(again(epoch), place) for place in sorted({place for place, _ in sought.waiting}))
        for place in sought.remaining(count(epoch)):
            self.issued = epoch, place + 1
            yield self._run(epoch, place)
        while self.order is None and count(epoch + 1):
            epoch += 1
            for place in range(count(epoch)):
                self.issued = epoch, place + 1
                yield self._run(epoch, place)

    def payload(self, run: Run) -> SentBatches | Mixture | None:
        plan = self._windows.plan
        if isinstance(plan.order, Mixture) and plan.order is not self.has_told:
            return plan.order
        if self.order is None:
            return None
        window = plan.batch(_real(run.epoch), run.position)
        return SentBatches(plan.seed, {window: np.asarray(plan.indices(window))})

    def batch(self, epoch: int, position: int) -> Batch:
        place = position // self._windows.plan.stride
        return self._windows.batch(_real(epoch), place)._replace(epoch=epoch)

    def indices(self, run: Run) -> Sequence[int]:
        plan = self._windows.plan
        return plan.indices(plan.batch(_real(run.epoch), run.position))

    def name(self, run: Run) -> str:
        return self._windows.name(_real(run.epoch), run.position // self._windows.plan.stride)

    def unpacker(self, take: Take, *, whole: bool) -> Opening:
        return Opening(take, self.sought, self._windows, Forms(), self._windows.batches, None, None, whole=whole)

    def forget(self, delivery: Delivery) -> None:
        pass

    def raise_error(self) -> None:
        pass

    def _run(self, epoch: int, place: int) -> Run:
        stride, window = self._windows.plan.stride, self._windows.batch(_real(epoch), place)
        return Run(epoch, place * stride, stride, 1, window.stop - window.start)


def _real(epoch: int) -> int:
    return again(epoch) if epoch < 0 else epoch
