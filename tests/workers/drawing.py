"""A dataset whose module has taken the functions that draw random numbers by name, as many do."""

from __future__ import annotations

import random as rnd
from random import choice, getrandbits, random, shuffle

import numpy as np
from numpy.random import rand, randint


class Drawing:
    def __len__(self) -> int:
        return 60

    def __getitem__(self, index: int) -> np.ndarray:
        deck = list(range(10))
        shuffle(deck)
        drawn = [random(), getrandbits(20), choice(range(1000)), rand(), randint(1000), rnd.random(), deck[0]]
        return np.array([index, *drawn])
