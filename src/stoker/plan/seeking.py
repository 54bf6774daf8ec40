"""Seeking: where a step of an epoch is in the plan, and where the consumer is once it has passed over some batches.

A step is the place of a batch among those of its epoch and shard, from 0 on.
"""

from __future__ import annotations

from dataclasses import replace

from stoker.plan.cursor import Cursor
from stoker.plan.plan import MAX_EPOCH, Batch, Plan


def batch_at(plan: Plan, epoch: int, step: int) -> Batch:
    """This shard's batch of that step.

    Raises:
        IndexError: The epoch has no such step.
    """
    count = plan.batch_count(epoch)
    if not 0 <= step < count:
        steps = f"0 to {count - 1}" if count else "none"
        raise IndexError(
            f"epoch {epoch} has no step {step}: it has {count} batches (of shard {plan.shard}), so its steps are "
            f"{steps}. Later batches are steps of epoch {epoch + 1}"
        )
    return plan.batch(epoch, step * plan.stride)


def passed_over(cursor: Cursor, plan: Plan, count: int) -> Cursor:
    """The cursor after the next ``count`` batches by the plan's order that were not taken, epoch after epoch.

    The end of an epoch is the beginning of the next one. Samples of this epoch that were left out still count in it.

    Raises:
        ValueError: There are no batches at all, or it would come beyond the last epoch that can be numbered.
    """
    if not plan.batch_count(cursor.epoch):
        if count:
            told = f"an epoch of {plan.length} samples" if plan.order is None else f"epoch {cursor.epoch}"
            raise ValueError(f"skip({count}): {told} has no batches (of shard {plan.shard})")
        return cursor
    left = count
    while left and cursor.taken:  # few: no more than are made ahead
        cursor, left = cursor.after(plan.batch(cursor.epoch, cursor.position), plan), left - 1
    if cursor.taken:
        return cursor
    # The first round may begin anywhere: there may have been another number of shards before it.
    here = len(range(cursor.position, plan.own_end(cursor.epoch), plan.stride))
    if left < here:
        return replace(cursor, position=cursor.position + left * plan.stride)
    epoch, step = _after_epochs(plan, cursor.epoch + 1, left - here)
    if epoch > MAX_EPOCH:
        raise ValueError(f"skip({count}) leads to epoch {epoch}, and {MAX_EPOCH} is the last: pass a smaller number")
    return Cursor(epoch, step * plan.stride)


def _after_epochs(plan: Plan, epoch: int, count: int) -> tuple[int, int]:
    """The epoch and the step after so many batches from the beginning of ``epoch`` on."""
    if plan.order is None:  # all epochs are alike
        epochs, step = divmod(count, len(plan))
        return epoch + epochs, step
    while count:
        here = plan.batch_count(epoch)
        if not here:
            raise ValueError(f"epoch {epoch} has no batches (of shard {plan.shard}), so that none can be passed over")
        if count < here:
            break
        epoch, count = epoch + 1, count - here
    return epoch, count
