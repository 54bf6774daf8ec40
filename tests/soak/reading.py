"""Reads a life through several loaders, each of which goes on from the state of the one before."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from stoker import Loader
from tests.soak.harm import Harm
from tests.soak.ledger import Ledger
from tests.soak.life import Life
from tests.soak.tally import Tally

_AT_A_TIME = 100  # batches read before the loader is left, at most
_HELD = 12  # batches held, at most


def through_json(state: dict[str, Any]) -> dict[str, Any]:
    restored: dict[str, Any] = json.loads(json.dumps(state))
    return restored


class Reading:
    """One life, from its first batch to its last. ``folder``: for quarantine files, and for what is kept."""

    def __init__(self, life: Life, chance: random.Random, tally: Tally, folder: Path) -> None:
        self._life = life
        self._chance = chance
        self._tally = tally
        self._expected, self._got = folder / "expected.jsonl", folder / "got.jsonl"  # quarantine files
        self._options = life.quarantine(self._got) | life.keep.options(folder / "kept")
        self._oracle_options = life.quarantine(self._expected) | life.keep.options(folder / "kept for the oracle")
        self._files = folder / "files"
        self._harm = Harm(chance.random(), life.harms, life.often, tally.faults)
        self._ledger = Ledger(in_order=life.plan["in_order"])
        self._held: list[tuple[int, Any]] = []
        self._state: dict[str, Any] | None = None
        self._mark = 0  # of the ledger, when the state was saved

    def run(self) -> None:
        self._ask_the_oracle()
        while self._state is None or self._state["epoch"] < self._life.epochs:
            with self._life.loader(self._chance, self._files, **self._options) as loader:
                self._tally.loaders += 1
                try:
                    for _ in range(self._chance.choice([1, 1, 2])):
                        self._go_on(loader)
                finally:
                    self._harm.end()
            self._let_go(self._chance.randrange(_HELD))  # those that are left outlive their loader
        self._let_go(0)
        self._compare_quarantines()
        self._tally.judge(self._ledger.verdict(), self._ledger.details)

    def _ask_the_oracle(self) -> None:
        with self._life.oracle(self._files, **self._oracle_options) as oracle:
            for epoch in range(self._life.epochs):
                for batch in oracle:
                    self._ledger.expect_batch(epoch, batch)
            self._tally.left_out += oracle.stats().skipped
        expected = _read_quarantine(self._expected)
        self._tally.faults["deadly sample"] += sum(index in self._life.dataset.deadly for _, index, _ in expected)
        if self._life.dataset.hanging:
            self._tally.faults["hanging sample"] += oracle.stats().skipped

    def _go_on(self, loader: Loader[Any]) -> None:
        """Reads for a while, from the last state. Then perhaps forgets a part of it, as a crash does."""
        if self._state is not None:
            loader.load_state_dict(self._state)
            self._tally.resumes += 1
        left = self._chance.randrange(1, _AT_A_TIME)
        self._save(loader)
        forgetful = self._chance.random() < 0.3
        while left > 0 and loader.epoch < self._life.epochs:
            for batch in loader:
                self._take(loader, batch)
                left -= 1
                if not forgetful or self._chance.random() < 0.2:
                    self._save(loader)
                if not left:
                    break
            else:
                self._save(loader)  # the last batches may have been left out as a whole
        self._ledger.rewind(self._mark)

    def _save(self, loader: Loader[Any]) -> None:
        self._state, self._mark = through_json(loader.state_dict()), self._ledger.mark

    def _take(self, loader: Loader[Any], batch: Any) -> None:
        self._tally.deliver(self._ledger.note(loader.epoch, batch))
        self._held.append((loader.epoch, batch))
        if len(self._held) > _HELD or self._chance.random() < 0.2:
            self._let_go(self._chance.randrange(_HELD))
        self._harm.strike([loader])

    def _let_go(self, keep: int) -> None:
        """Looks at held batches once more: they must still be what they were."""
        while len(self._held) > keep:
            self._ledger.check(*self._held.pop(self._chance.randrange(len(self._held))))

    def _compare_quarantines(self) -> None:
        """Written down is what was left out, no less and no more, and why. What a crash forgot comes twice."""
        expected, got = _read_quarantine(self._expected), _read_quarantine(self._got)
        deadly = self._life.dataset.deadly
        told = {(epoch, index, "WorkerDied" if index in deadly else error) for epoch, index, error in expected}
        got = {entry for entry in got if entry[0] < self._life.epochs}
        if got != told:
            self._tally.errors += 1
            self._tally.wrong.append(f"quarantine: missing {sorted(told - got)}, too many {sorted(got - told)}")


def _read_quarantine(file: Path) -> set[tuple[int, int, str]]:
    """Epoch, index, and the error's type."""
    if not file.exists():
        return set()
    entries = [json.loads(line) for line in file.read_text().splitlines()]
    return {(entry["epoch"], entry["index"], entry["error"].split(":")[0]) for entry in entries}
