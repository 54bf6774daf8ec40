"""From a batch of numpy views to the arrays of a framework, and on to a device.

One file a framework, imported with the first batch, or by the constructor if there is a device to check;
``conveyor`` moves batches ahead. May import ``collate``, and of ``sources`` the forms of columns. Knows nothing of
workers or slots, only that a batch's memory is reused once the last numpy view of it is gone.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from typing import Any, Literal, get_args

from stoker.bridges.conveyor import Conveyor, InFlight, landed
from stoker.interrupts import put_off

__all__ = ["Bridge", "Conveyor", "Framework", "InFlight", "Move", "arrow_first", "bridge", "goes_elsewhere", "landed"]

Framework = Literal["numpy", "torch", "jax", "tensorflow", "tinygrad", "arrow"]
_ON_THE_CPU = ("numpy", "arrow")
_PACKAGES = {"arrow": ("pyarrow", "files")}  # what is imported, and what is installed, where it has another name


@cache
def _room(framework: Framework) -> Any:
    with put_off():  # to import a framework takes seconds; one that was broken off may crash when it is tried again
        return importlib.import_module(f"{__name__}.to_{framework}")


@dataclass(frozen=True)
class Bridge:
    """Turns batches into one framework's arrays. Pickles, and imports the framework with its first batch."""

    framework: Framework
    device: Any = None

    def __call__(self, batch: Any) -> Any:
        return _room(self.framework).convert(batch, self.device)


@dataclass(frozen=True)
class Move:
    """A batch through the user's own ``to_device``, after what ``to`` makes of it. May give an ``InFlight``."""

    before: Callable[[Any], Any] | None
    to_device: Callable[..., Any]
    device: Any
    takes_device: bool

    def __call__(self, batch: Any) -> Any:
        batch = batch if self.before is None else self.before(batch)
        moved = self.to_device(batch, self.device) if self.takes_device else self.to_device(batch)
        if not isinstance(moved, InFlight) or self.before is None:
            return moved

        def finish(_held: Any = batch) -> None:  # what ``to`` has made is read until the copy is done
            moved.finish()

        return InFlight(moved.batch, finish)


def _takes_device(to_device: Callable[..., Any], device: Any) -> bool:
    try:
        inspect.signature(to_device).bind(None, None)
    except TypeError:
        return False
    except ValueError:  # written in C, and does not say
        return device is not None
    return True


def arrow_first(bridge: Callable[[Any], Any] | None) -> tuple[Bridge | None, Callable[[Any], Any] | None]:
    """The part of a bridge that makes record batches, if it does, and what is left: columns need not become lists for
    it, and many batches at once are quicker to convert than each by itself."""
    before = bridge.before if isinstance(bridge, Move) else bridge
    if not isinstance(before, Bridge) or before.framework != "arrow":
        return None, bridge
    return before, replace(bridge, before=None) if isinstance(bridge, Move) else None


def goes_elsewhere(device: Any, to_device: Callable[..., Any] | None) -> bool:
    """Whether batches leave the memory they are in, so that it is worth moving them ahead of the consumer."""
    if to_device is not None or device is None:
        return to_device is not None
    return "cpu" not in str(device).lower()  # each has its own words: cpu:0, CPU, /device:CPU:0, TFRT_CPU_0


def bridge(
    to: Framework | Callable[[Any], Any] | None, device: Any = None, to_device: Callable[..., Any] | None = None
) -> Callable[[Any], Any] | None:
    """The callable that each batch goes through, or None where batches stay as they are.

    Args:
        to: a framework's name, a callable of your own that takes the whole batch, or None.
        device: where the framework is to put the arrays, in its own words: ``"cuda:0"``, ``"gpu:1"``, ...
        to_device: instead of the framework's own way there: gets the batch, and the device if it takes two arguments.

    Raises:
        TypeError: `to_device` is not callable.
        ValueError: an unknown name, a device with nothing that could move a batch there, or one that is not there:
            only the framework knows, so it is imported if there is a device.
        ImportError: the framework is not installed.
    """
    if to_device is not None:
        if not callable(to_device):
            raise TypeError(f"to_device={to_device!r}: pass a function that takes a batch, or a batch and a device")
        return Move(bridge(to), to_device, device, _takes_device(to_device, device))
    if to is None or (callable(to) and not isinstance(to, str)):
        _refuse_device(to, device)
        return to
    if to not in get_args(Framework):
        known = ", ".join(repr(name) for name in get_args(Framework))
        raise ValueError(f"to={to!r} is not known: pass one of {known}, or pass a callable")
    if to in _ON_THE_CPU:
        _refuse_device(to, device)
    package, extra = _PACKAGES.get(to, (to, to))
    if find_spec(package) is None:
        raise ImportError(
            f"to={to!r} needs {package}, which is not installed: pip install stoker[{extra}]", name=package
        )
    if device is not None:
        _room(to).check(device)
    return Bridge(to, device)


def _refuse_device(to: object, device: object) -> None:
    if device is None:
        return
    if callable(to):
        raise ValueError(f"device={device!r} does nothing for a callable `to`: move the batch in the callable itself")
    raise ValueError(
        f'{to or "numpy"} batches have no device={device!r}: pass to="torch" (or another framework) or to_device= '
        f"beside it"
    )
