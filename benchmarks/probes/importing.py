"""What `import stoker` costs over a bare interpreter, and which frameworks it brings in."""

from __future__ import annotations

import subprocess
import sys
from time import perf_counter

_FRAMEWORKS = ("torch", "jax", "tensorflow", "tinygrad", "ray", "pandas", "matplotlib")
_ASK = f"import sys, stoker; print(sum(name in sys.modules for name in {_FRAMEWORKS!r}))"


def measure() -> dict[str, float]:
    """Seconds more than `python -c pass`, as the difference of two runs made one after the other."""
    bare = _seconds("pass")[0]
    with_stoker, printed = _seconds(_ASK)
    return {"seconds": with_stoker - bare, "frameworks": float(printed)}


def _seconds(program: str) -> tuple[float, str]:
    begin = perf_counter()
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return perf_counter() - begin, done.stdout
