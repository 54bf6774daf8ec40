"""What a sampler draws from random generators, so that it can draw the same again after a resume."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

Generators = Sequence[Any]  # torch's, which belong to a loader or its samplers


def generators_of(*owners: Any) -> Generators:
    """The generators that a loader and its samplers have of their own, each once."""
    found = [getattr(owner, "generator", None) for owner in owners]
    return list({id(one): one for one in found if isinstance(one, torch.Generator)}.values())


def captured(generators: Generators) -> dict[str, Any]:
    """The state of these generators, and of those that all code of this process shares."""
    return {
        "torch": torch.get_rng_state(),
        "numpy": np.random.get_state(),
        "python": random.getstate(),
        "generators": current(generators),
    }


def packed(draws: dict[str, Any]) -> dict[str, Any]:
    """The same, as ``torch.load`` reads it with ``weights_only=True``."""
    name, keys, *rest = draws["numpy"]
    version, words, gauss = draws["python"]
    return {
        **draws,
        "numpy": [name, torch.from_numpy(np.asarray(keys).astype(np.int64)), *rest],
        "python": [version, torch.tensor(words, dtype=torch.int64), gauss],
    }


def unpacked(draws: dict[str, Any]) -> dict[str, Any]:
    name, keys, *rest = draws["numpy"]
    version, words, gauss = draws["python"]
    return {
        **draws,
        "numpy": (name, keys.numpy().astype(np.uint32), *rest),
        "python": (version, tuple(words.tolist()), gauss),
    }


def current(generators: Generators) -> list[Any]:
    return [generator.get_state() for generator in generators]


def set_all(generators: Generators, states: Sequence[Any]) -> None:
    for generator, state in zip(generators, states, strict=False):
        generator.set_state(state)


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """Afterwards, the generators that all code of this process shares are where they are now."""
    now = captured(())
    try:
        yield
    finally:
        set_shared(now)


@contextlib.contextmanager
def drawn_again(draws: dict[str, Any] | None, generators: Generators) -> Iterator[None]:
    """Within, all generators begin where they were when ``draws`` was captured.

    Afterwards, the shared ones are where they are now: they belong to the training. The others stay.
    """
    if draws is None:
        yield
        return
    with kept():
        set_shared(draws)
        set_all(generators, draws["generators"])
        yield


def set_shared(draws: dict[str, Any]) -> None:
    torch.set_rng_state(draws["torch"])
    np.random.set_state(draws["numpy"])
    random.setstate(draws["python"])
