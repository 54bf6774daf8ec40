"""Mixtures: a `Mix` beside a single source of the same samples, and beside peers' mixtures with the same weights."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.comparisons import Comparison, Row
from benchmarks.workloads import (
    GRAIN_MIX,
    HF_INTERLEAVED,
    STOKER,
    STOKER_MIX,
    TORCHDATA_WEIGHTED,
    WORKLOADS,
    Workload,
)

_COST = 0.97  # of a single source's samples a second
_LEAST = 8.0  # times as fast as a peer

_CONTENDERS = (STOKER, STOKER_MIX, GRAIN_MIX, HF_INTERLEAVED, TORCHDATA_WEIGHTED)
_MIXTURE = replace(
    WORKLOADS["small"],
    name="mixture_small",
    contenders=_CONTENDERS,
    ours=STOKER_MIX,
    least_of_torch=None,
    least_of_limit=None,
)

MIXTURE_WORKLOADS: dict[str, Workload] = {_MIXTURE.name: _MIXTURE}


def _beside(contender: str, about: str, least: float | None) -> Row:
    return Row(contender, about, STOKER_MIX, contender, least)


MIXTURE_COMPARISONS: dict[str, Comparison] = {
    _MIXTURE.name: Comparison(
        _MIXTURE,
        "Three sources of 256,000 samples of 1 KB, by the weights 0.5, 0.3 and 0.2: 256 a batch, shuffled",
        "Mix, against it",
        (
            _beside(STOKER_MIX, "", None),
            _beside(STOKER, "one source", _COST),
            _beside(GRAIN_MIX, "MapDataset.mix, two processes", _LEAST),
            _beside(HF_INTERLEAVED, "interleave_datasets, memory-mapped; torch's DataLoader", _LEAST),
            _beside(TORCHDATA_WEIGHTED, "MultiNodeWeightedSampler of indices; ParallelMapper, two processes", _LEAST),
        ),
    )
}
