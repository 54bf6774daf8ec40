"""A mixture of ten sources of a thousand million samples: time to the first batch, memory, and resuming far inside."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from benchmarks import memory
from benchmarks.probes.billion import Billion

_BATCH = 256


def measure(resume_at: int | None) -> dict[str, float]:
    """Seconds to the first batch, from the loader's making, and the consumer's extra memory by then.

    Args:
        resume_at: The batch to resume at through `load_state_dict`; None: begin without a state.
    """
    import stoker

    state = None if resume_at is None else _state_at(resume_at)
    before, begin = memory.rss_bytes(), perf_counter()
    loader: Any = stoker.Loader(_mix(), _BATCH, shuffle=True, workers=stoker.Processes(2))
    if state is not None:
        loader.load_state_dict(state)
    next(iter(loader))
    seconds = perf_counter() - begin
    extra = max(memory.peak_rss_bytes(), memory.rss_bytes()) - before
    loader.close()
    return {"seconds": seconds, "extra_bytes": float(extra)}


def _mix() -> Any:
    import stoker

    return stoker.Mix({f"source {number}": Billion() for number in range(10)}, [2.0**-number for number in range(10)])


def _state_at(step: int) -> dict[str, Any]:
    """The state that taking `step` batches would leave, without taking them, as in `billion.py`."""
    from stoker.plan import Cursor, Plan, to_state

    plan = Plan(10**10, _BATCH, shuffle=True, order=_mix().order(stride=_BATCH, seed=0))
    state: dict[str, Any] = to_state(Cursor(position=step * _BATCH), plan)
    return state
