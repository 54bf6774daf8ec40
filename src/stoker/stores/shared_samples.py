"""What cache and rotation have in common: samples that many workers need, and each is made by one of them.

    look ── there ────────────────────────────────> read it
     │
     └ missing ── claim ── mine ── make it, put it there ───────> others read it
                    │
                    └ another's ── wait until that one is done or dead, and look again

A worker first makes all that it has claimed, and waits only when it holds no claim: so nobody waits for somebody who
waits. A claim is a lock of the system's, which ends with its holder, however that one ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, Protocol

from stoker.sources import SampleError
from stoker.stores.claims import Claimed


class SharedSamples(Protocol):
    """Where samples stand, by their keys."""

    def look(self, keys: Sequence[int]) -> dict[int, Any]:
        """Those that are there."""

    def claiming(self, keys: Sequence[int]) -> AbstractContextManager[Claimed]:
        """Claims those of the keys that nobody has; at its end, claims for which nothing was put are given back."""

    def put(self, key: int, sample: Any) -> None:
        """Puts there what was claimed, if there is room."""

    def wait_for(self, other: int) -> None:
        """Until that worker has done what it claimed, or is dead."""


class NoSharedSamples:
    """Where there is no room for any: each sample is made whenever it is needed."""

    def look(self, keys: Sequence[int]) -> dict[int, Any]:
        return {}

    def claiming(self, keys: Sequence[int]) -> AbstractContextManager[Claimed]:
        return nullcontext(Claimed(keys, None))

    def put(self, key: int, sample: Any) -> None:
        pass

    def wait_for(self, other: int) -> None:
        pass


class Collected(NamedTuple):
    """Samples by key, and why some are missing."""

    samples: dict[int, Any]
    failed: dict[int, SampleError]


def collect(
    kept: SharedSamples, keys: Sequence[int], make: Callable[[int], Any | SampleError], tick: Callable[[], None]
) -> Collected:
    """The samples of these keys, either kept already, or made and put there.

    Args:
        kept: Where they stand.
        keys: Some may be there several times.
        make: Makes one. What it raises, this raises; a ``SampleError`` that it returns takes the sample's place.
        tick: Called when a wait begins and ends: it is no part of the work.
    """
    samples = kept.look(keys)
    failed: dict[int, SampleError] = {}
    missing = [key for key in dict.fromkeys(keys) if key not in samples]
    while missing:
        with kept.claiming(missing) as (mine, other):
            for key in mine:
                made = make(key)
                if isinstance(made, SampleError):
                    failed[key] = made
                else:
                    samples[key] = made
                    kept.put(key, made)
        missing = [key for key in missing if key not in samples and key not in failed]
        if missing and other is not None:
            tick()
            kept.wait_for(other)
            tick()
        if missing:
            samples.update(kept.look(missing))
            missing = [key for key in missing if key not in samples]
    return Collected(samples, failed)
