"""Batches of a dataset with an index, by plan."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from stoker.agenda.agenda import Take
from stoker.engine import Delivery
from stoker.plan import Batch, Cursor, Plan, Run, from_state, runs, to_state
from stoker.sources import IndexedSource

_SHOWN = 64  # indices of a batch that are written out in a message


class IndexedAgenda:
    """A unit is a batch: workers work out its indices themselves, and get nothing but its position.

    Args:
        plan: Which batches there are. Its length plays no part where workers make the dataset.
        source: The dataset, or what makes it.
        longest_run: How many batches a worker may make in one go, by the plan.
    """

    what = "sample"
    interrupt: BaseException | None = None  # nothing of the user's is called here

    def __init__(self, plan: Plan, source: IndexedSource, longest_run: Callable[[Plan], int]) -> None:
        self.cursor = Cursor()
        self.is_counted = not source.is_factory
        self._source, self._longest_run = source, longest_run
        self._set_plan(plan)

    def _set_plan(self, plan: Plan) -> None:
        self.plan = plan
        self.batch = plan.batch  # as it is, since it is called for each batch

    @property
    def length(self) -> int:
        return self.plan.length

    @property
    def longest_run(self) -> int:
        return self._longest_run(self.plan)

    @property
    def epoch(self) -> int:
        return self.cursor.epoch

    @property
    def shard(self) -> tuple[int, int]:
        return self.plan.shard

    def set_shard(self, shard: tuple[int, int]) -> None:
        plan = dataclasses.replace(self.plan, shard=shard)
        self.cursor = from_state(to_state(self.cursor, self.plan), plan)
        self._set_plan(plan)

    def set_length(self, length: int) -> None:
        self._set_plan(self.plan.of_length(length))
        self.is_counted = True

    def __len__(self) -> int:
        return len(self.plan)

    def seek(self) -> None:
        pass

    def unpacker(self, take: Take, *, whole: bool) -> None:
        return None

    def runs(self, size: Callable[[], int]) -> Iterator[Run | None]:
        return runs(self.cursor.onwards(self.plan), self.plan.stride, size)

    def payload(self, run: Run) -> Any:
        return None

    def indices(self, run: Run) -> Sequence[int]:
        return self.plan.indices(self.plan.batch(run.epoch, run.position))

    def name(self, run: Run) -> str:
        indices = self.indices(run)
        more = f", ... {len(indices)} in all" if len(indices) > _SHOWN else ""
        samples = ", ".join(map(str, indices[:_SHOWN])) + more
        return f"the batch at position {run.position} of epoch {run.epoch} (samples {samples})"

    def at_end(self) -> bool:
        return self.plan.has_none_at(self.cursor.position)

    def after(self, delivery: Delivery) -> Cursor:
        batch, cursor, plan = delivery.batch, self.cursor, self.plan
        if cursor.taken or batch.position != cursor.position or batch.epoch != cursor.epoch:
            return cursor.after(batch, plan)
        return Cursor(cursor.epoch, plan.next_position(cursor.position), cursor.taken, cursor.skipped)

    def leave_out(self, count: int) -> Cursor:
        return dataclasses.replace(self.cursor, skipped=self.cursor.skipped + count)

    def left_out(self) -> int:
        return self.cursor.skipped

    def all_of(self, batch: Batch) -> Plan:
        return self.plan

    def forget(self, delivery: Delivery) -> None:
        pass

    def raise_error(self) -> None:
        pass

    def go_to(self, epoch: int) -> Cursor:
        return Cursor(epoch)

    def recount(self) -> bool:
        cursor = self.cursor
        if self._source.is_factory or cursor.position or cursor.taken:
            return False
        length = len(self._source.dataset)
        if length == self.plan.length:
            return False
        self._set_plan(self.plan.of_length(length))
        return True

    def look(self) -> None:
        return None

    def state(self, cursor: Cursor) -> dict[str, Any]:
        return to_state(cursor, self.plan)

    def from_state(self, state: dict[str, Any]) -> Cursor:
        return from_state(state, self.plan)

    def close(self) -> None:
        pass
