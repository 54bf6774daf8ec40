"""How many batches a worker is asked for at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

import stoker

_LONGEST_S = 0.003  # of a bundle: what it costs to ask for it hardly counts then
_LARGEST = 2**22  # bytes of a bundle: its memory is free again only when the last of its batches is
_LARGE = (torch.Tensor, np.ndarray, bytes)
_MOST = 16  # batches of a bundle
_PER_WORKER = 8  # bundles in an epoch, at least: with fewer, one worker might have much more to do than another


def most_at_a_time(batches: int | None, workers: int) -> int:
    """Batches of a bundle at most, in an epoch of so many; None: nobody knows."""
    return _MOST if batches is None else max(1, min(_MOST, batches // (_PER_WORKER * workers)))


def next_size(size: int, most: int, seconds: float, batch: Any) -> int:
    """The size of the next bundles, after one of ``size`` whose batches took so long each, and were like this one."""
    quick = int(_LONGEST_S / max(seconds, 1e-6))
    wanted = max(1, min(most, quick, 2 * size))
    return wanted if wanted <= size else max(1, min(wanted, _LARGEST // max(1, _nbytes(batch))))


def _nbytes(batch: Any) -> int:
    """Of the tensors, arrays and bytes in it."""
    return sum(leaf.nbytes if hasattr(leaf, "nbytes") else len(leaf) for leaf in _large_leaves(batch))


def _large_leaves(batch: Any) -> list[Any]:
    found: list[Any] = []
    stoker.map_leaves(lambda leaf: found.append(leaf) if isinstance(leaf, _LARGE) else None, batch)
    return found
