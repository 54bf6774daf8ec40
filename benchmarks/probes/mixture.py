"""A mixture of ten sources of a thousand million samples: time to the first batch, memory, and resuming far inside."""

from __future__ import annotations

from typing import Any

from benchmarks.probes.billion import BATCH, Billion, first_batch


def measure(resume_at: int | None) -> dict[str, float]:
    """See `first_batch`.

    Args:
        resume_at: The batch to resume at through `load_state_dict`; None: begin without a state.
    """
    return first_batch(_mix(), None if resume_at is None else _state_at(resume_at))


def _mix() -> Any:
    import stoker

    return stoker.Mix({f"source {number}": Billion() for number in range(10)}, [2.0**-number for number in range(10)])


def _state_at(step: int) -> dict[str, Any]:
    """The state that taking `step` batches would leave, without taking them, as in `billion.py`."""
    from stoker.plan import Cursor, Plan, to_state

    plan = Plan(10**10, BATCH, shuffle=True, order=_mix().order(stride=BATCH, seed=0))
    state: dict[str, Any] = to_state(Cursor(position=step * BATCH), plan)
    return state
