"""Work to do on items. Importable by workers, so that it travels by reference as users' own modules do."""

from __future__ import annotations

import os
import random
import signal
import time
from typing import Any

import numpy as np


def rows(item: int) -> np.ndarray:
    """Easy to check, hard to mistake; the sizes differ."""
    return np.full((item % 5, 3), item)


def forest(item: Any) -> Any:
    return {"item": item, "arrays": (np.array(3.5), [np.zeros((0, 2)), np.arange(4)[::-1]]), "text": "é", "none": None}


def dice(item: int) -> tuple[int, float, float]:
    return item, random.random(), np.random.rand()


def number(item: int) -> int:
    return item


def failing(item: int) -> int:
    """Raises over every number that ends with 3."""
    if item % 10 == 3:
        raise KeyError(f"item {item} ends with three")
    return item


def stopping(item: int) -> int:
    raise StopIteration


def deadly(item: int) -> int:
    """Kills its worker over 5, always."""
    if item == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return item


def hanging(item: int) -> int:
    """Hangs over 5, always."""
    if item == 5:
        time.sleep(600)
    return item


def slow_first(item: int) -> int:
    """Over 0 it waits until a later item was done, which a file tells; its folder is in the environment."""
    path = os.path.join(os.environ["STOKER_TEST_FOLDER"], "done")
    while item == 0 and not os.path.exists(path):
        time.sleep(0.001)
    if item == 3:
        open(path, "x").close()
    return item


def interrupted(item: int) -> int:
    if item == 2:
        raise KeyboardInterrupt
    return item
