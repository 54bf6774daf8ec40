"""Finding the nursery of this process, among whatever other children frameworks have left."""

from __future__ import annotations

import psutil


def nursery() -> psutil.Process:
    (found,) = [child for child in psutil.Process().children() if "nursery import main" in " ".join(child.cmdline())]
    return found
