"""Processes and threads that hammer one rotation_file with tiny cells, while some of them are killed.

``python -m tests.rotation.hammer SEED PLACES USES KILLS BATCHES`` prints the figures as JSON; ``wrong`` are samples
that were not what their key says although they were held to be good.
"""

from __future__ import annotations

import json
import mmap
import os
import random
import signal
import sys
import threading
import traceback
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from stoker.memory import anonymous_file
from stoker.stores.locks import Locks
from stoker.stores.record_codec import RecordDecoder, RecordEncoder
from stoker.stores.rotation_file import RotationFile
from stoker.stores.shared_samples import collect

_PROCESSES, _THREADS = 3, 2
_KEYS = 24  # that are needed at the same time
_PER_STEP = 5  # batches after which the keys move on by one


def sample_of(key: int) -> Any:
    """What a key stands for. Sizes and forms differ from one to the next, so a mix of two is none of them."""
    kind, length = key % 3, 1 + key * 37 % 1500
    if kind == 0:
        return np.full(length, key, np.int64)
    if kind == 1:
        return {"data": np.full(length, key, np.int32), "key": key, "text": str(key) * (key % 7)}
    return [str(key), np.full((length, 2), key % 251, np.uint8), (key, None, float(key))]


def copied(sample: Any) -> Any:
    """As collating does: after this, nothing is read from the rotation_file any more."""
    if isinstance(sample, np.ndarray):
        return sample.copy()
    if isinstance(sample, dict):
        return {name: copied(value) for name, value in sample.items()}
    return [copied(value) for value in sample] if isinstance(sample, list) else sample


def is_right(key: int, sample: Any) -> bool:
    try:
        np.testing.assert_equal(sample, sample_of(key))
    except AssertionError:
        return False
    return True


@dataclass(frozen=True)
class Hammer:
    """What all have in common. ``told`` is a pipe that takes one JSON line at a time."""

    file: int
    makers: int  # a file with a lock for each key that is being made
    told: int
    clock: mmap.mmap  # batches so far, roughly
    places: int
    uses: int

    def tell(self, **words: Any) -> None:
        os.write(self.told, (json.dumps(words) + "\n").encode())

    def work(self, seed: int) -> None:
        """Batch after batch, until killed."""
        try:
            self._work(random.Random(seed))
        except BaseException:
            self.tell(wrong=traceback.format_exc()[-2000:])

    def _work(self, chance: random.Random) -> None:
        reader = RecordDecoder("pickle", copies=chance.random() < 0.3)
        rotation_file = RotationFile(self.file, self.places, RecordEncoder("pickle"), reader, lambda: None)
        making = Locks(os.open(f"/proc/self/fd/{self.makers}", os.O_RDWR | os.O_CLOEXEC))
        count = np.frombuffer(self.clock, np.int64)
        while True:
            count[0] += 1
            base = int(count[0]) // _PER_STEP
            keys = [base + chance.randrange(min(_KEYS, self.places)) for _ in range(chance.randrange(1, 8))]
            again = self._batch(rotation_file, keys, making)
            self.tell(again=again)

    def _batch(self, rotation_file: RotationFile, keys: list[int], making: Locks) -> int:
        """Reads a batch until it was good. Gives how often it was not."""
        again = 0
        while True:
            rotation_file.begin()
            found = collect(rotation_file, keys, lambda key: self._make(key, making), lambda: None).samples
            got = {key: copied(found[key]) for key in keys}
            unique, uses = np.unique(keys, return_counts=True)
            if rotation_file.count(unique.tolist(), uses, np.full(len(unique), self.uses)):
                break
            again += 1
        for key in keys:
            if not is_right(key, got[key]):
                self.tell(wrong=f"{key}: {got[key]!r:.200}")
        return again

    def _make(self, key: int, making: Locks) -> Any:
        if not making.try_take(key):
            self.tell(twice=key)
            return sample_of(key)
        self.tell(made=key)
        try:
            return sample_of(key)
        finally:
            making.release(key)


def start(hammer: Hammer, seed: int) -> int:
    pid = os.fork()
    if pid:
        return pid
    threads = [threading.Thread(target=hammer.work, args=(seed * _THREADS + k,)) for k in range(_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os._exit(0)


def main(seed: int, places: int, uses: int, kills: int, batches: int) -> dict[str, Any]:
    chance = random.Random(seed)
    hearing, told = os.pipe()
    hammer = Hammer(anonymous_file(), anonymous_file(), told, mmap.mmap(-1, 8), places, uses)
    pids = [start(hammer, seed * 1000 + k) for k in range(_PROCESSES)]
    figures: Counter[str] = Counter(batches=0, again=0, made=0, twice=0, kills=0)
    wrong: list[str] = []
    next_kill = batches / (kills + 1)
    with open(hearing) as lines:
        while figures["batches"] < batches and not wrong:
            words = json.loads(lines.readline())
            if "wrong" in words:
                wrong.append(words["wrong"])
            elif "again" in words:
                figures.update(batches=1, again=words["again"])
            else:
                figures[next(iter(words))] += 1
            if figures["kills"] < kills and figures["batches"] >= next_kill:
                next_kill += batches / (kills + 1)
                figures["kills"] += 1
                victim = chance.randrange(_PROCESSES)
                end(pids[victim])
                pids[victim] = start(hammer, seed * 1000 + _PROCESSES + figures["kills"])
        for pid in pids:
            end(pid)
    return {**figures, "wrong": wrong, "kib": os.fstat(hammer.file).st_blocks / 2}


def end(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


if __name__ == "__main__":
    print(json.dumps(main(*map(int, sys.argv[1:]))))
