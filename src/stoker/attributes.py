"""Which attributes of a loader may be set."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stoker.arguments import OF_TORCH, brief, near_name

_ALIKE = 0.8  # from which on a name is taken for another one, misspelt


def check_settable(name: str, value: Any, arguments: Iterable[str], *, is_open: bool) -> None:
    """Whether an attribute of a loader may be set: not if that had no effect. Others are the user's own.

    Args:
        name: Of the attribute.
        value: What it is to be.
        arguments: What loaders are made with.
        is_open: False: what looks like a misspelt name is refused, too.

    Raises:
        AttributeError: It would have no effect, or would seem to.
    """
    if name.startswith("_"):
        return
    known, shown = list(arguments), brief(value)
    if name == "epoch":
        remedy = f"call loader.set_epoch({shown})"
    elif name in known:
        remedy = f"make a new loader with {name}={shown}"
    elif name in OF_TORCH:
        remedy = f"make a new loader, and {OF_TORCH[name].format(shown)}"
    elif not is_open and (near := near_name(name, [*known, "epoch"], likeness=_ALIKE)):
        remedy = f"is {near} meant? For an attribute of your own, choose another name"
    else:
        return
    raise AttributeError(f"loader.{name} = {shown} would have no effect: {remedy}")
