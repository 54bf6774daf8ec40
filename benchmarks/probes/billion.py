"""A shuffled dataset of a thousand million samples: time to the first batch, memory, and resuming far inside."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import memory

BATCH = 256


class Billion:
    def __len__(self) -> int:
        return 10**9

    def __getitem__(self, index: int) -> NDArray[np.int64]:
        return np.full(16, index)


def measure(resume_at: int | None) -> dict[str, float]:
    """See `first_batch`.

    Args:
        resume_at: The batch to resume at through `load_state_dict`; None: begin without a state.
    """
    return first_batch(Billion(), None if resume_at is None else _state_at(resume_at))


def first_batch(dataset: Any, state: dict[str, Any] | None) -> dict[str, float]:
    """Seconds to the first batch, from the loader's making, and the consumer's extra memory by then."""
    import stoker

    before, begin = memory.rss_bytes(), perf_counter()
    loader: Any = stoker.Loader(dataset, BATCH, shuffle=True, workers=stoker.Processes(2))
    if state is not None:
        loader.load_state_dict(state)
    next(iter(loader))
    seconds = perf_counter() - begin
    extra = max(memory.peak_rss_bytes(), memory.rss_bytes()) - before
    loader.close()
    return {"seconds": seconds, "extra_bytes": float(extra)}


def _state_at(step: int) -> dict[str, Any]:
    """The state that taking `step` batches would leave, without taking them.

    A state carries a check and must not be edited, so the library's own writer makes it. This is the one place in
    the bench that uses more than Stoker's public face.
    """
    from stoker.plan import Cursor, Plan, to_state

    state: dict[str, Any] = to_state(Cursor(position=step * BATCH), Plan(10**9, BATCH, shuffle=True))
    return state
