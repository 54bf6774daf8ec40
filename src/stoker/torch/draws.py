"""What a sampler draws from random generators, so that it can draw the same again after a resume."""

from __future__ import annotations

import base64
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
    """The same, as JSON and ``torch.load(weights_only=True)`` can hold it."""
    name, keys, *rest = draws["numpy"]
    version, words, gauss = draws["python"]
    return {
        "torch": _text(draws["torch"].numpy()),
        "numpy": [name, _text(np.asarray(keys, np.uint32)), *rest],
        "python": [version, _text(np.asarray(words, np.uint32)), gauss],
        "generators": [_text(state.numpy()) for state in draws["generators"]],
    }


def unpacked(draws: dict[str, Any]) -> dict[str, Any]:
    """Raises one error or another for what is no state of such generators."""
    name, keys, *rest = draws["numpy"]
    version, words, gauss = draws["python"]
    found: dict[str, Any] = {
        "torch": torch.from_numpy(_array(draws["torch"], np.uint8)),
        "numpy": (name, _array(keys, np.uint32), *rest),
        "python": (version, tuple(_array(words, np.uint32).tolist()), gauss),
        "generators": [torch.from_numpy(_array(state, np.uint8)) for state in draws["generators"]],
    }
    torch.Generator().set_state(found["torch"])
    np.random.RandomState().set_state(found["numpy"])
    random.Random().setstate(found["python"])
    return found


def _text(array: np.ndarray[Any, Any]) -> str:
    return base64.b64encode(array.tobytes()).decode("ascii")


def _array(text: str, dtype: Any) -> np.ndarray[Any, Any]:
    return np.frombuffer(bytearray(base64.b64decode(text, validate=True)), dtype)


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


def are_there(draws: dict[str, Any]) -> bool:
    """Whether the shared generators are where they were when ``draws`` was captured."""
    now = captured(())
    return (
        torch.equal(now["torch"], draws["torch"])
        and now["python"] == draws["python"]
        and all(np.array_equal(one, other) for one, other in zip(now["numpy"], draws["numpy"], strict=True))
    )


def move_on() -> None:
    """After draws of others were used in place of its own: or the next epoch would draw what this one should have."""
    torch.empty((), dtype=torch.int64).random_()


def set_shared(draws: dict[str, Any]) -> None:
    torch.set_rng_state(draws["torch"])
    np.random.set_state(draws["numpy"])
    random.setstate(draws["python"])
