"""Packing: documents of log-normal lengths into rows of 2,048 tokens, by Stoker, by Grain, and by hand for torch."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from benchmarks.comparisons import Comparison, Row
from benchmarks.datasets import Documents
from benchmarks.figures import Group, Line, Probe
from benchmarks.workloads import PACKING_BEST, PACKING_FIRST, PACKING_STOKER, PACKING_TORCH, Workload

NAME = "packing"
_DOCUMENTS = 100_000  # of which 8,192 are in memory
_BATCH = 8  # rows
_BATCHES = _DOCUMENTS // 4 // _BATCH  # about as many: a row holds four documents, more or less
_LEAST, _LEAST_USED = 5.0, 0.97
_WARM_UP_S = 3.0

PACKING_WORKLOADS: dict[str, Workload] = {
    NAME: Workload(
        NAME, "8 rows of 2,048 int32, packed", lambda _: Documents(_DOCUMENTS), _BATCH, _BATCHES, _BATCH * 2048 * 4,
        "tokens/s", (PACKING_STOKER, PACKING_FIRST, PACKING_BEST, PACKING_TORCH), ours=PACKING_STOKER,
    )
}  # fmt: skip


def _beside(contender: str, about: str, least: float | None = None) -> Row:
    return Row(contender, about, PACKING_STOKER, contender, least)


PACKING_COMPARISONS: dict[str, Comparison] = {
    NAME: Comparison(
        PACKING_WORKLOADS[NAME],
        "Documents of log-normal lengths (median 400) in memory, packed into rows of 2,048 tokens: 8 rows a batch",
        "Stoker, against it",
        (
            _beside(PACKING_STOKER, "windows of 1,024 documents, best fit decreasing"),
            _beside(PACKING_FIRST, "FirstFitPackIterDataset, 64 rows open in each of two processes", _LEAST),
            _beside(PACKING_BEST, "BestFitPackIterDataset, the same", _LEAST),
            _beside(PACKING_TORCH, "one row after the other, until the next document does not fit", _LEAST),
        ),
        warm_up=_WARM_UP_S,
    )
}


def groups() -> Iterator[Group]:
    """What share of the rows of an epoch holds tokens."""
    libraries = {"stoker": "Stoker", "grain": "Grain, first fit", "torch": "torch's IterableDataset"}
    yield Group(
        NAME,
        tuple(Probe(label, "packing", {"library": label}) for label in libraries),
        tuple(_share(label, name) for label, name in libraries.items()),
        runs=1,
    )


def _share(label: str, name: str) -> Line:
    key, is_ours = f"{label}.share", label == "stoker"
    return Line(
        f"packing_{label}",
        f"Packing into rows of 2,048: share of an epoch's places that hold tokens, {name}",
        f"≥ {_LEAST_USED:g}" if is_ours else "–",
        lambda raw: f"{median(raw[key]):.4f}",
        lambda raw: median(raw[key]) >= _LEAST_USED if is_ours else None,
    )
