"""The share of places that hold tokens, over an epoch of packed rows, each library without workers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.contenders.packed_stream import ROW, share_of
from benchmarks.datasets import Documents

_DOCUMENTS = 20_000


def measure(library: str) -> dict[str, float]:
    return {"share": share_of(_segments(library, Documents(_DOCUMENTS)))}


def _segments(library: str, dataset: Documents) -> Iterator[Any]:
    if library == "stoker":
        import stoker

        with stoker.Loader(dataset, 8, shuffle=True, pack=stoker.Pack(ROW)) as loader:
            yield from (batch["segment_ids"] for batch in loader)
    elif library == "grain":
        from benchmarks.contenders import packing_with_grain as grain

        rows = grain.packed(dataset, best=False, shuffle=True, repeat=False)
        yield from (row[grain.SEGMENTS] for row in rows)
    else:
        from benchmarks.contenders import packing_with_torch as torch

        yield from (row[torch.SEGMENTS] for row in torch.Packed(dataset, shuffle=True))
