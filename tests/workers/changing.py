"""Datasets whose samples follow from what they hold, and what a loader makes of them."""

from __future__ import annotations

import numpy as np


class Scaled:
    """Samples follow from a scalar, an array and a list."""

    def __init__(self, count=32):
        self.factor = 1
        self.values = np.arange(count)
        self.names = [0] * count
        self.transform = None

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        value = self.values[index] * self.factor + self.names[index]
        return value if self.transform is None else self.transform(value)


def read(loader):
    return [batch.tolist() for batch in loader]


class Counting:
    def __init__(self, value):
        self.value = value

    def __len__(self):
        return 4

    def __getitem__(self, index):
        with self.value.get_lock():
            self.value.value += 1
        return index
