"""Figures of the drop-in: who waited for whom, in the words of torch's arguments."""

from __future__ import annotations

import copy
import gc
import pickle
import re
import time

import torch

from stoker.torch import DataLoader
from tests.children import child_pids


class Sleepy(torch.utils.data.Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, index):
        time.sleep(0.01)
        return torch.tensor(index)


def test_the_sentence_names_torchs_arguments(capsys):
    loader = DataLoader(Sleepy(), batch_size=2, num_workers=1)
    assert loader.stats().diagnosis == "Nothing was delivered yet."
    for _ in loader:
        time.sleep(0.01)
    stats = loader.stats()
    assert (stats.workers, stats.batches, stats.samples) == (1, 20, 40)
    assert "dataset[i] and collate_fn" in stats.diagnosis
    assert (stats.setup.workers_argument, stats.setup.prefetch_argument) == ("num_workers", "prefetch_factor")
    assert "stoker.Threads" not in stats.diagnosis
    loader.report()
    assert " station " in capsys.readouterr().out


def test_without_workers_it_says_how_long_training_made_its_batches_itself():
    loader = DataLoader(Sleepy(), batch_size=2)
    assert loader.stats().diagnosis == "Nothing was delivered yet."
    for _ in loader:
        pass
    stats = loader.stats()
    assert (stats.workers, stats.batches, stats.samples) == (0, 20, 40)
    assert re.match(
        r"There are no workers: training made its batches itself, \d+ % of the time; pass num_w", stats.diagnosis
    )
    assert "20 batches and 40 samples" in stats.to_text()


def test_figures_do_not_keep_workers_of_a_loop_that_was_broken_off():
    loader = DataLoader(Sleepy(), batch_size=2, num_workers=2)
    iterator = iter(loader)
    next(iterator)
    pids = {worker.pid for worker in iterator._workers}
    assert pids <= child_pids()
    del iterator
    gc.collect()
    assert not pids & child_pids()
    assert (loader.stats().batches, loader.stats().workers_busy) == (1, 0)
    copies = copy.deepcopy(loader), pickle.loads(pickle.dumps(loader))
    assert [one.stats().batches for one in copies] == [0, 0]


def test_small_batches_are_counted_one_by_one_and_epoch_after_epoch():
    loader = DataLoader(torch.arange(1000), batch_size=2, num_workers=2, persistent_workers=True)
    for _ in range(2):
        assert len(list(loader)) == 500
    assert (loader.stats().batches, loader.stats().samples) == (1000, 2000)
    assert "1,000 batches" in loader.stats().to_text()
    loader._iterator._shutdown_workers()
    assert loader.stats().batches == 1000
