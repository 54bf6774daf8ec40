"""Datasets and functions that are slow in known ways: by sleeps where that will do, which no busy machine lengthens."""

from __future__ import annotations

import time

import numpy as np


class Sleeping:
    """Each sample takes so many seconds, and one of ``every`` takes ``longer``."""

    def __init__(self, length: int, seconds: float = 0.0, *, every: int = 0, longer: float = 0.0) -> None:
        self.length, self.seconds, self.every, self.longer = length, seconds, every, longer

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> np.ndarray:
        is_slow = self.every and index % self.every == self.every // 2
        seconds = self.longer if is_slow else self.seconds
        if seconds:  # else it would let others run first
            time.sleep(seconds)
        return np.full(4, index, np.float32)


class Computing:
    """Each sample takes so many seconds of processor time."""

    def __init__(self, length: int, seconds: float) -> None:
        self.length, self.seconds = length, seconds

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> int:
        compute(self.seconds)
        return index


class Multiplying:
    """Each sample is a product of matrices, with as many threads as the library likes."""

    def __len__(self) -> int:
        return 24

    def __getitem__(self, index: int) -> float:
        matrix = np.full((1200, 1200), 1.0 + index)
        return float((matrix @ matrix).sum())


def compute(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def slow_collate(samples: list[np.ndarray]) -> np.ndarray:
    time.sleep(0.04)
    return np.stack(samples)


def slow_move(batch: np.ndarray) -> np.ndarray:
    time.sleep(0.04)
    return batch
