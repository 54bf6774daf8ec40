"""Where the consumer is among batches or items, each of which is a unit of its own."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from stoker.engine import Delivery
from stoker.plan import Batch, Cursor, Numbering, Plan, from_state, plan_of_state, to_state


class PlannedProgress:
    """By a plan, and with its cursor.

    Args:
        plan: Which units there are.
        what: What the user calls the smallest part of them that can be left out.
        set_plan: Is told the plan of a state that is loaded, if that is another.
    """

    def __init__(self, plan: Plan | Numbering, what: str, set_plan: Callable[[Any], None] | None = None) -> None:
        self.plan, self.what = plan, what
        self._set_plan = set_plan
        self.cursor = Cursor()

    @property
    def epoch(self) -> int:
        return self.cursor.epoch

    def done(self) -> int:
        return self.cursor.position // self.plan.stride + len(self.cursor.taken)

    def at_end(self) -> bool:
        return self.plan.has_none_at(self.cursor.position, self.cursor.epoch)

    def after(self, delivery: Delivery) -> Cursor:
        batch, cursor, plan = delivery.batch, self.cursor, self.plan
        if cursor.taken or batch.position != cursor.position or batch.epoch != cursor.epoch:
            return cursor.after(batch, plan)
        position = plan.next_position(cursor.position, cursor.epoch)
        return Cursor(cursor.epoch, position, cursor.taken, cursor.skipped)

    def leave_out(self, count: int) -> Cursor:
        return dataclasses.replace(self.cursor, skipped=self.cursor.skipped + count)

    def left_out(self) -> int:
        return self.cursor.skipped

    def all_of(self, batch: Batch) -> Plan | Numbering:
        return self.plan

    def go_to(self, epoch: int) -> Cursor:
        return Cursor(epoch)

    def go_on_with(self, plan: Plan) -> None:
        """From where the consumer is, by another plan.

        Raises:
            StateError: It is where only the plan that it had can go on.
        """
        self.cursor = from_state(to_state(self.cursor, self.plan), plan)
        self.plan = plan

    def state(self, cursor: Cursor) -> dict[str, Any]:
        return to_state(cursor, self.plan)

    def from_state(self, state: dict[str, Any]) -> Cursor:
        plan = plan_of_state(state, self.plan)
        cursor = from_state(state, plan)
        if self._set_plan is not None and plan != self.plan:
            self._set_plan(plan)
        return cursor
