"""Makes this Linux lack, for Stoker, what another system does not have. A ``sitecustomize`` calls it before all else.

It is no Mac and no Windows: their own ways (how a file is locked, what can be deleted while it is open) are not here.
What it shows is that nothing of Stoker's needs what is missing there.
"""

from __future__ import annotations

import errno
import importlib.util
import os
import sys
from collections.abc import Mapping, Sequence
from types import FrameType, ModuleType

_ON_THE_WAY = (__name__.partition(".")[0], "pathlib", "ctypes")
_FILES = ("/proc", "/sys", "/dev/shm")


def take_away(
    platform: str, names: Mapping[str, Sequence[str]], modules: Sequence[str], symbols: Sequence[str]
) -> None:
    """From now on, ``names`` of modules, whole ``modules``, functions of libc and Linux's files are not there."""
    for name, attributes in names.items():
        for owner in (name, f"_{name}"):  # signal, and _signal behind it
            _delete(sys.modules.get(owner) or importlib.import_module(name), attributes)
    for name in modules:
        sys.modules[name] = None  # type: ignore[assignment]
    _tell_stoker(platform)

    def forbid(event: str, arguments: tuple[object, ...]) -> None:
        if event not in ("open", "os.listdir", "ctypes.dlsym", "ctypes.dlopen") or not is_for_stoker():
            return
        if event == "ctypes.dlsym" and arguments[1] in symbols:
            raise AttributeError(f"this system has no {arguments[1]}")
        if event == "ctypes.dlopen" and "dlopen" in symbols:
            raise TypeError("this system cannot load None")
        if event in ("open", "os.listdir") and str(arguments[0]).startswith(_FILES):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(arguments[0]))

    sys.addaudithook(forbid)


def is_for_stoker(skipping: str = "") -> bool:
    """Whether a module of Stoker's has asked, itself or by way of ``pathlib`` or ``ctypes``."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in (*_ON_THE_WAY, skipping):
        frame = frame.f_back
    return frame is not None and frame.f_globals.get("__name__", "").startswith("stoker.")


def _tell_stoker(platform: str) -> None:
    """Nobody else: what else is installed here is Linux's."""
    stoker = importlib.util.find_spec("stoker")
    assert stoker is not None
    assert stoker.submodule_search_locations
    path = os.path.join(stoker.submodule_search_locations[0], "systems.py")
    spec = importlib.util.spec_from_file_location("stoker.systems", path)
    assert spec is not None
    assert spec.loader is not None
    systems = sys.modules["stoker.systems"] = importlib.util.module_from_spec(spec)
    own, sys.platform = sys.platform, platform
    spec.loader.exec_module(systems)
    sys.platform = own


def _delete(module: ModuleType, patterns: Sequence[str]) -> None:
    for name in list(vars(module)):
        if any(name.startswith(one[:-1]) if one.endswith("*") else name == one for one in patterns):
            delattr(module, name)
