"""What workers do in these tests. Importable by workers."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np

import stoker
from tests.datasets import Rows


def squared(item: int) -> np.ndarray:
    return np.array(item * item)


class Exclusive(Rows):
    """Only two workers can have it, as of a server that lets no more of them in: the others fail, or die."""

    def __init__(self, how: str, n: int = 100) -> None:
        if (stoker.worker_number() or 0) >= 2:
            if how == "die":
                os._exit(3)
            raise ConnectionError("too many clients")
        super().__init__(n)


class Late(Rows):
    """Takes its time in all workers but the first, until there is a file; who waits for it leaves another."""

    def __init__(self, folder: str, n: int = 100) -> None:
        if stoker.worker_number():
            Path(folder, f"waits-{os.getpid()}").touch()
            while not Path(folder, "go").exists():
                time.sleep(0.005)
        super().__init__(n)
