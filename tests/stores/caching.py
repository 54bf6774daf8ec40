"""A dataset whose calls are counted, what a cache's stream must be, and a look into its folder."""

from __future__ import annotations

import contextlib
import os
import random
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from stoker import Cache, Inline, Loader
from stoker.stores.cache_inventory import Findings, list_generations, verify
from stoker.workers.randomness import seed_generators
from tests.streams import kept


class Counted:
    """Notes each call in a file, which all processes share. Draws from each generator, as augmentation does."""

    def __init__(self, n: int, log: Any = None, width: int = 3) -> None:
        self.n, self.width = n, width
        self.noted_in = None if log is None else str(log)  # under another name: it is no part of what the cache is of

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, index: int) -> dict[str, Any]:
        self.note(index)
        noise = np.random.rand(self.width) + random.random()
        return {"row": np.full(self.width, index, np.int32), "noise": noise, "name": f"sample {index}", "index": index}

    def note(self, index: int) -> None:
        if self.noted_in is not None:
            fd = os.open(self.noted_in, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.write(fd, index.to_bytes(4, "little"))
            os.close(fd)


def calls(log: Any) -> Counter[int]:
    """How often each sample was asked for."""
    return Counter(np.fromfile(log, "<u4").tolist()) if os.path.exists(log) else Counter()


def once(n: int) -> Counter[int]:
    return Counter(range(n))


def expected(dataset: Any, cache: Cache, epochs: int, batch_size: int | None = 4, **options: Any) -> list[list[Any]]:
    """The stream of a loader with that cache, without any store: each sample has the seed of its generation."""
    seed, stream = options.get("seed", 0), []
    for epoch in range(epochs):
        with Loader(_Made(dataset, cache, seed, epoch), batch_size, workers=Inline(), **options) as loader:
            loader.set_epoch(epoch)
            stream.append([kept(batch) for batch in loader])
    return stream


class _Made:
    def __init__(self, dataset: Any, cache: Cache, seed: int, epoch: int) -> None:
        self._samples = []
        for index in range(len(dataset)):
            seed_generators(cache.seed(seed, epoch, index))
            self._samples.append(dataset[index])

    def __len__(self) -> int:
        return len(self._samples)

    def __getitem__(self, index: int) -> Any:
        return self._samples[index]


def files(path: Any) -> list[str]:
    """The names of the generations."""
    return sorted(file.name for file in Path(path).glob("*.samples"))


def verified(path: Any) -> list[Findings]:
    """What a full check of each generation finds."""
    return [verify(one.path, lambda nbytes: None) for one in list_generations(str(path))]


def assert_whole(path: Any, n: int) -> None:
    """One generation, with all samples, and all sound."""
    assert verified(path) == [Findings(sound=n)]


class Watch:
    """Looks into the folder as often as it can, while something runs; keeps the most that it saw."""

    def __init__(self, look: Callable[[], float]) -> None:
        self._look, self._ended = look, threading.Event()
        self.most = 0.0
        self._thread = threading.Thread(target=self._watch)

    def _watch(self) -> None:
        while not self._ended.is_set():
            self.most = max(self.most, self._look())

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._ended.set()
        self._thread.join()


def nbytes(path: Any) -> int:
    """Of all files in a folder."""
    total = 0
    for file in Path(path).glob("*"):
        with contextlib.suppress(FileNotFoundError):
            total += file.stat().st_size
    return total
