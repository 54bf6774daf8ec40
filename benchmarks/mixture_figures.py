"""The figures of large mixtures: how they begin, and how they resume far inside."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.figures import Group, Probe, against, below_megabytes, below_seconds

FIRST, MEMORY, RESUME = "mixture_first", "mixture_memory", "mixture_resume"
NAMES = (FIRST, MEMORY, RESUME)
_SAME = 1.25  # as in figures.py


def groups() -> Iterator[Group]:
    yield Group(
        "10 × 10⁹ samples",
        (Probe("start", "mixture", {"resume_at": None}), Probe("zero", "mixture", {"resume_at": 0}),
         Probe("far", "mixture", {"resume_at": 10**6})),
        (
            below_seconds(FIRST, "Mix of 10 × 10⁹ samples, shuffled: first batch", "start.seconds", 1.0),
            below_megabytes(MEMORY, "Mix of 10 × 10⁹ samples: extra memory of the consumer", "start.extra_bytes", 1e8),
            against(RESUME, "Mix of 10 × 10⁹ samples: resume at batch 10⁶, against at 0",
                    "far.seconds", "zero.seconds", _SAME),
        ),
    )  # fmt: skip
