"""What the figures were measured on: nothing that names the host or its owner."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_LOADERS = ("stoker", "torch", "grain", "spdl", "tinyloader")
_PEERS_OF_THE_CACHE = ("datasets", "litdata", "mosaicml-streaming")
_PEERS_OF_CHUNKS = ("webdataset", "pyarrow", "msgspec", "s3fs")
_BESIDE_THE_DROP_IN = ("torchdata", "accelerate", "lightning-fabric")
_PACKAGES = (*_LOADERS, *_PEERS_OF_THE_CACHE, *_PEERS_OF_CHUNKS, *_BESIDE_THE_DROP_IN, "ray", "numpy", "pillow")


def describe(packages: Sequence[str] = _PACKAGES) -> dict[str, Any]:
    return {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "versions": {name: found for name in packages if (found := _version(name))},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
