"""Reads a life over n shards, then from some step on over m, and so on: together they are one unsharded epoch."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from stoker import Loader
from tests.soak.harm import Harm
from tests.soak.ledger import Indices, Ledger
from tests.soak.life import Life
from tests.soak.reading import through_json
from tests.soak.tally import Tally


def rounds(order: list[int], position: int, batch_size: int, count: int, drop_last: bool) -> Iterator[list[Indices]]:
    """The promise, plainly: a round gives each shard the next ``batch_size`` samples; the last one is split evenly."""
    while (rest := len(order) - position) > 0:
        if rest >= batch_size * count:
            cuts = [(k * batch_size, (k + 1) * batch_size) for k in range(count)]
        elif drop_last:
            return
        else:  # with fewer samples than shards, some take one that a neighbour has too
            cuts = [(k * rest // count, max((k + 1) * rest // count, k * rest // count + 1)) for k in range(count)]
        yield [tuple(order[position + start : position + stop]) for start, stop in cuts]
        position += batch_size * count


class Sharding:
    """One life, from its first round to its last. ``folder``: for a quarantine file, and for what is kept."""

    def __init__(self, life: Life, chance: random.Random, tally: Tally, folder: Path) -> None:
        self._life = life
        self._chance = chance
        self._tally = tally
        self._folder = folder
        self._options = life.quarantine(folder / "got.jsonl") | life.keep.options(folder / "kept")
        self._harm = Harm(chance.random(), life.harms, life.often, tally.faults)
        self._ledger = Ledger(in_order=True)
        self._size = life.plan["batch_size"] or 1
        self._epoch = self._position = 0
        self._count = 0
        self._state: dict[str, Any] | None = None

    def run(self) -> None:
        with self._life.order() as order:
            self._orders = [[int(index) for index in order] for _ in range(self._life.epochs)]
        while self._epoch < self._life.epochs:
            count = self._chance.randrange(1, 5)
            if self._state is not None:
                self._tally.resumes += count
                self._tally.reshards += count != self._count
            self._count = count
            with ExitStack() as opened:
                made = [
                    self._life.loader(self._chance, self._folder, shard=(k, count), **self._options)
                    for k in range(count)
                ]
                loaders = [opened.enter_context(loader) for loader in made]
                self._tally.loaders += count
                opened.callback(self._harm.end)
                self._read(loaders)
        self._tally.judge(self._ledger.verdict(), self._ledger.details)

    def _read(self, loaders: list[Loader[Any]]) -> None:
        """Some rounds of this epoch, or all that are left; then the state of any one of them is good for all."""
        for loader in loaders:
            if self._state is not None:
                loader.load_state_dict(self._state)
        iterators = [iter(loader) for loader in loaders]
        stop = self._chance.randrange(1, 40)
        left = self._rounds_left(len(loaders))
        if not left and self._state is not None:  # fewer samples are left than these shards would take: they go on
            self._epoch, self._position = self._epoch + 1, 0
            if self._epoch == self._life.epochs:
                return
            left = self._rounds_left(len(loaders))
        for number, expected in enumerate(left):
            if number == stop:
                self._position += number * self._size * len(loaders)
                break
            self._harm.strike(loaders)
            for iterator, indices in zip(iterators, expected, strict=True):
                self._take(iterator, indices)
        else:
            self._finish(iterators)
        self._state = through_json(self._chance.choice(loaders).state_dict())

    def _rounds_left(self, count: int) -> list[list[Indices]]:
        drop_last = self._life.plan["drop_last"]
        return list(rounds(self._orders[self._epoch], self._position, self._size, count, drop_last))

    def _take(self, iterator: Iterator[Any], indices: Indices) -> None:
        failing = self._life.dataset.failing
        self._tally.left_out += sum(index in failing for index in indices)
        left = tuple(index for index in indices if index not in failing)
        if left:
            self._ledger.expect(self._epoch, left)
            batch = next(iterator, None)
            if batch is not None:
                self._tally.deliver(self._ledger.note(self._epoch, batch))

    def _finish(self, iterators: list[Iterator[Any]]) -> None:
        for iterator in iterators:
            for batch in iterator:  # there should be none
                self._ledger.note(self._epoch, batch)
        self._epoch, self._position = self._epoch + 1, 0
