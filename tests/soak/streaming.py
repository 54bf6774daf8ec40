"""Reads a life as a stream of items, some of which are slow to come, through several streams one after the other."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import stoker
from tests.soak.harm import Harm
from tests.soak.ledger import Ledger
from tests.soak.life import Life
from tests.soak.reading import through_json
from tests.soak.tally import Tally

_AT_A_TIME = 80  # results read before the stream is left, at most
_SLOW_S = 0.008  # the most that an item takes to come


@dataclass(frozen=True)
class SlowItems:
    """The indices. ``often``: how likely one is slow to come."""

    length: int
    often: float

    def __iter__(self) -> Iterator[int]:
        chance = random.Random(self.length)
        for index in range(self.length):
            if chance.random() < self.often:
                time.sleep(chance.uniform(0, _SLOW_S))
            yield index


class Streaming:
    """One life, from its first result to its last. ``folder``: for a quarantine file."""

    def __init__(self, life: Life, chance: random.Random, tally: Tally, folder: Path) -> None:
        self._life, self._chance, self._tally = life, chance, tally
        self._items = SlowItems(life.dataset.length, chance.choice([0.0, 0.1, 1.0]))
        self._policy = life.policy | life.quarantine(folder / "got.jsonl")
        self._harm = Harm(chance.random(), life.harms, life.often, tally.faults)
        self._ledger = Ledger(in_order=life.plan["in_order"])
        self._state: dict[str, Any] | None = None
        self._mark = 0  # of the ledger, when the state was saved

    def run(self) -> None:
        left_out = {"on_error": "skip"} if "on_error" in self._policy else {}
        with stoker.stream(self._life.dataset.tamed().__getitem__, range(self._items.length), **left_out) as oracle:
            for result in oracle:
                self._ledger.expect_batch(0, result)
            self._tally.left_out += oracle.stats().skipped
        while not self._go_on():
            pass
        self._tally.judge(self._ledger.verdict(), self._ledger.details)

    def _go_on(self) -> bool:
        """Reads for a while, from the last state. Whether that was all."""
        workers, prefetch = self._life.workers(self._chance), self._chance.choice([1, 2, 2, 4, 8])
        options = self._life.plan | self._policy | {"workers": workers, "prefetch": prefetch}
        with stoker.stream(self._life.dataset.__getitem__, self._items, **options) as results:
            self._tally.loaders += 1
            try:
                return self._read(results)
            finally:
                self._harm.end()

    def _read(self, results: Any) -> bool:
        if self._state is not None:
            results.load_state_dict(self._state)
            self._tally.resumes += 1
        forgetful, left = self._chance.random() < 0.3, self._chance.randrange(1, _AT_A_TIME)
        for result in results:
            self._tally.deliver(self._ledger.note(0, result))
            self._harm.strike([results])
            if not forgetful or self._chance.random() < 0.2:
                self._state, self._mark = through_json(results.state_dict()), self._ledger.mark
            left -= 1
            if not left:
                self._ledger.rewind(self._mark)
                return False
        return True
