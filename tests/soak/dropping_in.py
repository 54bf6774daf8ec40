"""Reads a life through the drop-in for torch's DataLoader, and compares its batches with those of torch's own."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader as TorchLoader

import stoker.torch
from stoker.torch import in_workers
from tests.soak.harm import Harm
from tests.soak.ledger import Ledger
from tests.soak.life import Life
from tests.soak.reading import through_json
from tests.soak.tally import Tally

_AT_A_TIME = 100  # batches read before the loader is left, at most
_MANY = 1_000_000  # workers that may die over one batch: they are killed at random


class DroppingIn:
    """One life, from its first batch to its last. ``folder``: not needed."""

    def __init__(self, life: Life, chance: random.Random, tally: Tally, folder: Path) -> None:
        self._life, self._chance, self._tally = life, chance, tally
        self._plan = {key: life.plan[key] for key in ("batch_size", "shuffle", "drop_last", "persistent_workers")}
        self._seed = life.plan["seed"]  # of the sampler's generator
        self._harm = Harm(chance.random(), life.harms, life.often, tally.faults)
        self._ledger = Ledger(in_order=life.plan["in_order"])
        self._epoch = 0
        self._saved: tuple[Any, int, int] | None = None  # a state, the ledger's mark, and the epoch

    @property
    def worker_pids(self) -> list[int]:
        """Of the loop that runs."""
        stream = self._loader._stream() if self._loader._stream is not None else None
        return [] if stream is None else stream.worker_pids

    def run(self) -> None:
        in_workers._DEATHS = _MANY
        self._ask_the_oracles()
        while self._epoch < self._life.epochs:
            self._loader = self._new_loader()
            self._tally.loaders += 1
            if self._saved is not None:
                self._loader.load_state_dict(self._saved[0])
                self._tally.resumes += 1
            try:
                self._go_on()
            finally:
                self._harm.end()
                del self._loader
        self._tally.judge(self._ledger.verdict(), self._ledger.details)

    def _ask_the_oracles(self) -> None:
        """Torch for the batches, and the drop-in without workers for the random numbers that a ``seed`` gives."""
        dataset = self._life.dataset.tamed()
        workers = int(self._plan["persistent_workers"])
        torchs = TorchLoader(dataset, num_workers=workers, generator=self._generator(), **self._plan)
        alone = self._plan | {"persistent_workers": False}
        ours = stoker.torch.DataLoader(dataset, seed=self._seed, generator=self._generator(), **alone)
        for epoch in range(self._life.epochs):
            for batch in torchs:
                self._ledger.expect(epoch, tuple(batch["index"].tolist()))
            for batch in ours if not self._plan["persistent_workers"] else ():  # which draws other seeds
                self._ledger.expect_noise(epoch, batch)

    def _generator(self) -> torch.Generator:
        return torch.Generator().manual_seed(self._seed)

    def _new_loader(self) -> Any:
        least = int(self._plan["persistent_workers"])
        count = 2 if least else self._chance.randrange(4)
        options: dict[str, Any] = {"num_workers": count, "in_order": self._life.plan["in_order"]}
        if count:
            options["prefetch_factor"] = self._chance.choice([1, 2, 2, 4])
            options["multiprocessing_context"] = self._chance.choice(["fork", "fork", "fork", "forkserver"])
        return stoker.torch.DataLoader(
            self._life.dataset, seed=self._seed, generator=self._generator(), **self._plan, **options
        )

    def _go_on(self) -> None:
        """Reads for a while. Then perhaps forgets a part of it, as a crash does."""
        left, forgetful = self._chance.randrange(1, _AT_A_TIME), self._chance.random() < 0.3
        self._save()
        while left > 0 and self._epoch < self._life.epochs:
            for batch in self._loader:
                self._tally.deliver(self._ledger.note(self._epoch, batch))
                self._harm.strike([self])
                left -= 1
                if not forgetful or self._chance.random() < 0.2:
                    self._save()
                if not left:
                    break
            else:
                self._epoch += 1
                self._save()
        assert self._saved is not None
        _, mark, self._epoch = self._saved
        self._ledger.rewind(mark)

    def _save(self) -> None:
        self._saved = through_json(self._loader.state_dict()), self._ledger.mark, self._epoch
