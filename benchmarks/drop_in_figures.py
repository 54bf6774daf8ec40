"""The figures of the drop-in for torch's `DataLoader`: from one epoch to the next."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.figures import Group, Probe, against

_LIBRARIES = ("drop_in", "torch")
_MOST = 0.1  # of torch's time
NAMES = ("drop_in_turnaround", "drop_in_turnaround_new")


def groups() -> Iterator[Group]:
    for name, persistent in zip(NAMES, (True, False), strict=True):
        workers = "kept" if persistent else "new"
        yield Group(
            f"turn-around, {workers} workers",
            tuple(Probe(one, "turnaround", {"library": one, "persistent": persistent}) for one in _LIBRARIES),
            (against(name, f"`stoker.torch`: epoch turn-around, persistent_workers={persistent}, against torch's",
                     "drop_in.seconds", "torch.seconds", _MOST),),
        )  # fmt: skip
