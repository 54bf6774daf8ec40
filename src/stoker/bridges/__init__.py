"""From a batch of numpy views to the arrays of a framework, and on to a device.

One file a framework, imported with the first batch. May import ``collate``. Knows nothing of workers or
slots, only that a batch's memory is reused once the last numpy view of it is gone.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Literal, get_args

__all__ = ["Bridge", "Framework", "bridge"]

Framework = Literal["numpy", "torch", "jax", "tensorflow", "tinygrad"]


@dataclass(frozen=True)
class Bridge:
    """Turns batches into one framework's arrays. Pickles, and imports the framework with its first batch."""

    framework: Framework
    device: Any = None

    def __call__(self, batch: Any) -> Any:
        room = importlib.import_module(f"{__name__}.to_{self.framework}")
        return room.convert(batch, self.device)


def bridge(to: Framework | Callable[[Any], Any] | None, device: Any = None) -> Callable[[Any], Any] | None:
    """The callable that each batch goes through, or None where batches stay as they are.

    Args:
        to: a framework's name, a callable of your own that takes the whole batch, or None.
        device: where the framework is to put the arrays, in its own words: ``"cuda:0"``, ``"gpu:1"``, ...

    Raises:
        ValueError: an unknown name, or a device with nothing that could move a batch there.
        ImportError: the framework is not installed.
    """
    if to is None or (callable(to) and not isinstance(to, str)):
        _refuse_device(to, device)
        return to
    if to not in get_args(Framework):
        known = ", ".join(repr(name) for name in get_args(Framework))
        raise ValueError(f"to={to!r} is not known: write one of {known}, or pass a callable")
    if to == "numpy":
        _refuse_device(to, device)
    if find_spec(to) is None:
        raise ImportError(f"to={to!r} needs {to}, which is not installed: pip install stoker[{to}]", name=to)
    return Bridge(to, device)


def _refuse_device(to: object, device: object) -> None:
    if device is None:
        return
    if callable(to):
        raise ValueError(f"device={device!r} does nothing for a callable `to`: move the batch in the callable itself")
    raise ValueError(f'numpy batches have no device={device!r}: write to="torch" (or another framework) beside it')
