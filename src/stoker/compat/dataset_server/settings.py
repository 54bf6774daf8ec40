"""``cache_setting`` and ``rotation_setting``, checked, as ``stoker.Cache`` and ``stoker.Rotation``."""

from __future__ import annotations

import difflib
import math
import operator
import os
from collections.abc import Mapping
from typing import Any

import stoker

_CACHE = "cache_setting", ("prefix", "update_frequency"), ("codec",)
_ROTATION = "rotation_setting", ("medium", "rotation"), ("size", "prefix")
_MEDIA = ("memory", "disk")


def cache_of(setting: Any) -> stoker.Cache | None:
    """The cache in the folder ``{prefix}_cache``. ``codec`` is Stoker's own, for samples that only pickle can keep."""
    if setting is None:
        return None
    _check_keys(setting, *_CACHE)
    prefix = _checked_prefix("cache_setting", setting["prefix"])
    frequency = setting["update_frequency"]
    if frequency != math.inf:
        remedy = 'float("inf") for never, or leave cache_setting out'
        frequency = _checked_number("cache_setting", "update_frequency", frequency, 2, remedy)
    return stoker.Cache(f"{prefix}_cache", refresh_every=frequency, codec=setting.get("codec", "safe"))


def rotation_of(setting: Any) -> stoker.Rotation | None:
    """The rotation; on disk, in the folder that ``prefix`` leads to."""
    if setting is None:
        return None
    _check_keys(setting, *_ROTATION)
    medium, size, folder = setting["medium"], setting.get("size"), None
    if medium not in _MEDIA:
        raise ValueError(f"rotation_setting: medium={medium!r}: pass one of {', '.join(map(repr, _MEDIA))}")
    times = _checked_number("rotation_setting", "rotation", setting["rotation"], 2, "or leave rotation_setting out")
    if size is not None:
        size = _checked_number("rotation_setting", "size", size, 1, "the samples that rotate at the same time")
    if medium == "disk":
        if missing := [key for key in ("size", "prefix") if setting.get(key) is None]:
            raise ValueError(
                f"rotation_setting={dict(setting)!r} has no {missing[0]!r}, which medium='disk' needs: pass how many "
                f"samples rotate at the same time (size) and where to keep them (prefix), as in 'folder/name'"
            )
        folder = os.path.dirname(_checked_prefix("rotation_setting", setting["prefix"])) or "."
    return stoker.Rotation(times, medium=medium, size=size, path=folder)


def _check_keys(setting: Any, name: str, needed: tuple[str, ...], possible: tuple[str, ...]) -> None:
    words = " and ".join(map(repr, needed))
    if not isinstance(setting, Mapping):
        raise TypeError(f"{name}={setting!r}: pass a dict with {words}, or None")
    for key in needed:
        if key not in setting:
            raise ValueError(f"{name}={dict(setting)!r} has no {key!r}: pass {words}")
    for key in setting:
        if key not in needed + possible:
            nearest = difflib.get_close_matches(str(key), needed + possible, n=1, cutoff=0.0)[0]
            raise ValueError(f"{name} has the unknown key {key!r}: the nearest that it may have is {nearest!r}")


def _checked_prefix(name: str, prefix: Any) -> str:
    if not isinstance(prefix, str | os.PathLike):
        raise TypeError(f"{name}: prefix={prefix!r}: pass how the files' names begin, as in 'folder/name'")
    path: str = os.fspath(prefix)
    folder = os.path.dirname(path) or "."
    if not path:
        raise ValueError(f"{name}: prefix={path!r}: pass how the files' names begin, as in 'folder/name'")
    if not os.path.isdir(folder):
        raise ValueError(f"{name}: prefix={path!r}: there is no folder {folder!r}. Make it, or pass another prefix")
    return path


def _checked_number(name: str, key: str, value: Any, least: int, remedy: str) -> int:
    is_whole = hasattr(value, "__index__") and not isinstance(value, bool)
    if not is_whole or operator.index(value) < least:
        kind = ValueError if is_whole else TypeError
        raise kind(f"{name}: {key}={value!r}: pass a whole number of {least} or more, {remedy}")
    return operator.index(value)
