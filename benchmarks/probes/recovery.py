"""What a worker's death costs: from the SIGKILL to the batch it was making, less the time that making it takes."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from statistics import median

import numpy as np

import stoker

_WORK_S = 0.05  # a batch
_KILLS = 20


class Working:
    def __len__(self) -> int:
        return 10 * _KILLS

    def __getitem__(self, index: int) -> np.ndarray:
        time.sleep(_WORK_S)
        return np.full(1000, index)


def measure(start: str) -> dict[str, float]:
    logging.getLogger("stoker").setLevel(logging.ERROR)
    extra = []
    with stoker.Loader(Working(), None, workers=stoker.Processes(1, start=start), prefetch=1) as loader:
        iterator = iter(loader)
        next(iterator)
        for _ in range(_KILLS):
            (pid,) = loader.worker_pids
            killed: list[float] = []
            killer = threading.Timer(_WORK_S / 2, _kill, (pid, killed))  # in the middle of the next batch
            killer.start()
            next(iterator)
            extra.append(time.perf_counter() - killed[0] - _WORK_S)
            next(iterator)
    return {"seconds": median(extra), "worst": max(extra)}


def _kill(pid: int, killed: list[float]) -> None:
    killed.append(time.perf_counter())
    os.kill(pid, signal.SIGKILL)
