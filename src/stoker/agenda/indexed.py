"""Batches of a dataset with an index, by plan."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from stoker.agenda.agenda import ENDLESS, Take
from stoker.agenda.asked_order import AskedOrder
from stoker.agenda.planned_progress import PlannedProgress
from stoker.engine import Delivery
from stoker.plan import Cursor, Mixture, Plan, Run, SentBatches, runs
from stoker.plan.mixture import Weights
from stoker.sources import IndexedSource

_SHOWN = 64  # indices of a batch that are written out in a message


class IndexedUnits:
    """A unit is a batch: workers work out its indices themselves, and get nothing but its position.

    Where code of the user's gives the order, they are told the indices. Then there are no units beyond the epoch that
    the consumer is in, since the next one is not asked for before its time. And where the weights of a mixture were set
    since the workers got the plan, they get the mixture with each unit.
    """

    interrupt: BaseException | None = None  # nothing of the user's is called here

    def __init__(self, plan: Plan, longest_run: Callable[[Plan], int]) -> None:
        self.sought = Cursor()  # where they begin
        self.issued = 0, 0  # epoch and position after the last unit that was handed out
        self.has_told = plan.order  # what workers have
        self._longest_run = longest_run
        self.set_plan(plan)

    def set_plan(self, plan: Plan) -> None:
        self._plan = plan
        self.batch = plan.batch  # as it is, since it is called for each batch

    @property
    def length(self) -> int:
        return self._plan.length

    @property
    def longest_run(self) -> int:
        plan, order = self._plan, self.order
        return self._longest_run(
            plan if order is None else dataclasses.replace(plan, order=order.given(self.sought.epoch))
        )

    @property
    def order(self) -> AskedOrder | None:
        """If it is asked for, epoch by epoch."""
        order = self._plan.order
        return order if isinstance(order, AskedOrder) else None

    def runs(self, size: Callable[[], int]) -> Iterator[Run | None]:
        cursor, plan = self.sought, self._plan
        batches = cursor.onwards(plan) if self.order is None else cursor.remaining(plan)
        for run in runs(batches, plan.stride, size):
            self.issued = run.epoch, run.position + run.size * plan.stride
            yield run

    def payload(self, run: Run) -> SentBatches | Mixture | None:
        plan = self._plan
        if isinstance(plan.order, Mixture) and plan.order is not self.has_told:
            return plan.order
        if self.order is None:
            return None
        batches = [plan.batch(run.epoch, position) for position in run.positions]
        return SentBatches(plan.seed, {batch: np.asarray(plan.indices(batch)) for batch in batches})

    def indices(self, run: Run) -> Sequence[int]:
        return self._plan.indices(self._plan.batch(run.epoch, run.position))

    def name(self, run: Run) -> str:
        indices = self.indices(run)
        more = f", ... {len(indices)} in all" if len(indices) > _SHOWN else ""
        samples = ", ".join(map(str, indices[:_SHOWN])) + more
        return f"the batch at position {run.position} of epoch {run.epoch} (samples {samples})"

    def unpacker(self, take: Take, *, whole: bool) -> None:
        return None

    def forget(self, delivery: Delivery) -> None:
        pass

    def raise_error(self) -> None:
        pass


class IndexedAgenda:
    """The batches of a dataset with an index, epoch after epoch.

    Args:
        plan: Which batches there are. Its length plays no part where workers make the dataset.
        source: The dataset, or what makes it.
        longest_run: How many batches a worker may make in one go, by the plan.
    """

    def __init__(self, plan: Plan, source: IndexedSource, longest_run: Callable[[Plan], int]) -> None:
        self.is_counted = not source.is_factory
        self.units = IndexedUnits(plan, longest_run)
        self.progress = PlannedProgress(plan, "sample", self._set_plan)
        self._plan, self._source = plan, source

    @property
    def plan(self) -> Plan:
        """What workers work by: they do not have an order that is asked for."""
        return self._plan if self.units.order is None else dataclasses.replace(self._plan, order=None)

    @property
    def shard(self) -> tuple[int, int]:
        return self._plan.shard

    def set_shard(self, shard: tuple[int, int]) -> None:
        plan = dataclasses.replace(self._plan, shard=shard)
        if isinstance(plan.order, Mixture) and self.progress.cursor == Cursor() and shard != self.shard:
            plan = dataclasses.replace(plan, order=plan.order.with_stride(plan.stride))
        self.progress.go_on_with(plan)
        self._set_plan(plan)
        self.units.has_told = plan.order

    def set_length(self, length: int) -> None:
        self._set_plan(self._plan.of_length(length))
        self.is_counted = True

    def __len__(self) -> int:
        order = self._plan.order
        if isinstance(order, Mixture) and order.is_endless:
            raise TypeError(ENDLESS)
        return self._plan.batch_count(self.progress.epoch)

    def set_weights(self, weights: Weights, cursor: Cursor, after: int | None, *, ahead: bool) -> tuple[int, bool]:
        """See ``MixedAgenda``: a unit is a batch."""
        plan, order = self.plan, self.plan.order
        assert isinstance(order, Mixture)
        here = cursor.epoch, max((start + plan.stride for start in cursor.taken), default=cursor.position)
        issued = max(here, self.units.issued) if ahead else here
        epoch, position = issued if after is None else _after(plan, *here, after)
        changed = order.with_weights(weights, order.stream_position(epoch, position))
        self._set_plan(dataclasses.replace(plan, order=changed))
        return _between(plan, here, (epoch, position)), (epoch, position) < issued

    def seek(self) -> None:
        self.units.sought = cursor = self.progress.cursor
        self.units.issued = cursor.epoch, cursor.position

    def recount(self) -> bool:
        cursor = self.progress.cursor
        if self._source.is_factory or cursor.position or cursor.taken:
            return False
        length = len(self._source.dataset)
        if length == self._plan.length:
            return False
        self._set_plan(self._plan.of_length(length))
        return True

    def look(self) -> Callable[[], None] | None:
        order, epoch = self.units.order, self.progress.epoch
        if order is None:
            return None
        order.begin(epoch)  # now: while the engine runs, no code of the user's is to be called
        return None if self.units.sought.epoch == epoch else lambda: None  # there is nothing yet of this epoch

    def close(self) -> None:
        pass

    def _set_plan(self, plan: Plan) -> None:
        self._plan = self.progress.plan = plan
        self.units.set_plan(plan)


def _after(plan: Plan, epoch: int, position: int, count: int) -> tuple[int, int]:
    """Epoch and position of the round after the next ``count`` ones."""
    left = _left(plan, position)
    if count < left:
        return epoch, position + count * plan.stride
    epochs, nth = divmod(count - left, plan.rounds)
    return epoch + 1 + epochs, nth * plan.stride


def _between(plan: Plan, start: tuple[int, int], stop: tuple[int, int]) -> int:
    """Rounds from one epoch and position to a later one."""
    here, there = _left(plan, start[1]), _left(plan, stop[1])
    return here - there + (stop[0] - start[0]) * plan.rounds


def _left(plan: Plan, position: int) -> int:
    """Rounds of an epoch from that position on."""
    rest = max(plan.positions - position, 0)
    return rest // plan.stride if plan.drop_last else -(-rest // plan.stride)
