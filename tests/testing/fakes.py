"""Loaders and datasets that break one promise each."""

from __future__ import annotations

import os
import random
import time
from typing import Any

import numpy as np

from stoker import Loader
from tests.datasets import Rows


class Fake:
    """A small loader that does all as it should, but for what it is told to do wrong."""

    def __init__(self, wrong: str = "", batches: int = 5) -> None:
        self.wrong = wrong
        self.batches = batches
        self.epoch = self.place = 0
        self.resumed = False
        self.closed = False

    def __iter__(self):
        while self.place < self.batches:
            place = self.place
            self.place += 1
            if self.wrong == "order after a resume" and self.resumed:
                place = self.batches - 1 - place
            if self.wrong == "noise" and (self.epoch, place) == (1, 3):
                yield {"x": np.frombuffer(os.urandom(8), np.int64)}
            else:
                yield {"x": np.array([self.epoch, place])}
        self.place = 0
        self.epoch += 0 if self.wrong == "the same epoch after a resume" and self.resumed else 1

    def state_dict(self) -> dict[Any, Any]:
        epoch, place = self.epoch, self.place
        if self.wrong == "loses what was prefetched":
            place = min(place + 2, self.batches)
        elif self.wrong == "repeats":
            place = max(place - 1, 0)
        elif self.wrong == "forgets the epoch":
            epoch = 0
        elif self.wrong == "counts from the resume" and self.resumed:
            place = max(0, place - 1)
        elif self.wrong == "saving moves it":
            self.place += self.place == 2
        elif self.wrong == "no JSON":
            return {"places": {epoch, place}}
        elif self.wrong == "number keys":
            return {0: epoch, 1: place}
        if place == self.batches and self.wrong != "the end is the end":
            epoch, place = epoch + 1, 0
        return {"epoch": epoch, "place": place}

    def load_state_dict(self, state: dict[Any, Any]) -> None:
        if self.wrong == "number keys":
            self.epoch, self.place = state[0], state[1]
        else:
            self.epoch, self.place = state["epoch"], state["place"]
        self.resumed = True

    def close(self) -> None:
        self.closed = True


class Scattered(Fake):
    """Delivers out of order, another order each time, and counts by what was delivered."""

    def __init__(self, wrong: str = "", batches: int = 5) -> None:
        super().__init__(wrong, batches)
        self.taken: list[int] = []

    def __iter__(self):
        left = [place for place in range(self.batches) if place not in self.taken]
        random.SystemRandom().shuffle(left)
        for place in left:
            self.taken.append(place)
            yield {"x": np.array([self.epoch, place])}
        self.taken = []
        self.epoch += 1

    def state_dict(self) -> dict[Any, Any]:
        if len(self.taken) == self.batches:
            return {"epoch": self.epoch + 1, "taken": []}
        if self.wrong == "loses":
            return {"epoch": self.epoch, "taken": list(range(len(self.taken)))}
        taken = self.taken[1:] if self.wrong == "repeats" else self.taken
        return {"epoch": self.epoch, "taken": taken}

    def load_state_dict(self, state: dict[Any, Any]) -> None:
        self.epoch, self.taken = state["epoch"], list(state["taken"])


class Around:
    """A real loader, and something between it and the consumer."""

    def __init__(self, loader: Loader[Any]) -> None:
        self.loader = loader
        self.stats = loader.stats
        self.close = loader.close
        self.state_dict = loader.state_dict
        self.load_state_dict = loader.load_state_dict

    @property
    def worker_pids(self) -> list[int]:
        return self.loader.worker_pids

    def __iter__(self):
        return iter(self.loader)


class LosesOneADeath(Around):
    def __iter__(self):
        known: set[int] = set()
        for batch in self.loader:
            now = set(self.worker_pids)
            if known <= now:
                yield batch
            known = now


class RepeatsOneADeath(Around):
    def __iter__(self):
        known: set[int] = set()
        for batch in self.loader:
            now = set(self.worker_pids)
            if not known <= now:
                yield batch
            known = now
            yield batch


class Counting(Rows):
    """Its samples depend on how often it was asked."""

    def __init__(self, n: int = 100) -> None:
        super().__init__(n)
        self.calls = 0

    def __getitem__(self, index: int) -> np.ndarray:
        self.calls += 1
        return self.data[index] + self.calls


class Entropic(Rows):
    """Draws from where no seed reaches."""

    def __init__(self, n: int = 100, source: str = "urandom") -> None:
        super().__init__(n)
        self.source = source

    def __getitem__(self, index: int) -> dict[str, Any]:
        draws = {
            "urandom": lambda: int.from_bytes(os.urandom(4), "big"),
            "system": lambda: random.SystemRandom().randrange(2**40),
            "process": os.getpid,
            "generator": lambda: int(np.random.default_rng().integers(2**40)),
        }
        return {"row": self.data[index], "drawn": draws[self.source]()}


class Sleepy(Rows):
    """Always at work."""

    def __getitem__(self, index: int) -> np.ndarray:
        time.sleep(0.002)
        return self.data[index]
