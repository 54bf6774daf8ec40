"""``on_error`` and friends while samples rotate: what fails is left out at each use, and nothing else."""

from __future__ import annotations

import contextlib
import json
import os
import random
from collections import Counter

import pytest

from stoker import Inline, Loader, Processes, Rotation, Threads
from tests.datasets import Augmented, Failing
from tests.rotation.datasets import calls, note
from tests.streams import assert_same, epochs, kept

pytestmark = pytest.mark.timeout(120)

KEPT = Rotation(3, size=6)


def test_samples_that_fail_are_skipped_at_each_use(backend):
    with Loader(Failing(24), 4, workers=backend, on_error="skip", rotation=KEPT) as loader:
        for _ in range(2):
            found = Counter(int(row[0]) for batch in loader for row in batch)
            assert found == Counter({index: 3 for index in range(24) if index != 13})
        assert loader.stats().skipped == 6


def test_a_batch_of_nothing_else_is_left_out_as_a_whole(backend):
    with Loader(Failing(16), 1, workers=backend, on_error="skip", rotation=Rotation(2, size=4)) as loader:
        assert [int(batch[0, 0]) for batch in loader] == [
            *[0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 6, 7, 4, 5, 6, 7, 8, 9, 10, 11, 8, 9, 10, 11],
            *[12, 14, 15, 12, 14, 15],
        ]


def test_an_error_comes_in_the_turn_of_each_use_and_the_rest_goes_on(backend):
    with Loader(Failing(18), 6, workers=backend, rotation=Rotation(2, size=6)) as loader:
        iterator, came = iter(loader), []
        for _ in range(6):
            try:
                came.append(int(next(iterator)[0, 0]))
            except ValueError as error:
                came.append(str(error))
        assert next(iterator, None) is None
    assert came == [0, 0, 6, 6, "thirteen", "thirteen"]


@pytest.mark.parametrize("workers", [Inline(), Threads(3), Processes(2)], ids=repr)
def test_what_is_quarantined_has_the_seed_of_the_sample_and_not_of_the_batch(workers, tmp_path):
    """So that ``stoker replay`` makes just what failed: all uses have one seed, and each epoch another."""
    file = tmp_path / "bad.jsonl"
    with Loader(Failing(24), 4, workers=workers, on_error="quarantine", quarantine=file, rotation=KEPT) as loader:
        epochs(loader, 2)
    entries = [json.loads(line) for line in file.read_text().splitlines()]
    assert Counter((entry["epoch"], entry["index"]) for entry in entries) == Counter({(0, 13): 3, (1, 13): 3})
    seeds = [{entry["seed"] for entry in entries if entry["epoch"] == epoch} for epoch in (0, 1)]
    assert [len(one) for one in seeds] == [1, 1]
    assert seeds[0] != seeds[1]


class Flickering(Augmented):
    """Sample 9 fails the first time that it is made, which a file remembers."""

    def __init__(self, log: str, n: int = 24) -> None:
        super().__init__(n)
        self.log = str(log)

    def __getitem__(self, index):
        note(self.log, index)
        if index == 9 and not os.path.exists(self.log + ".failed"):
            open(self.log + ".failed", "x").close()
            raise OSError("the file server had a bad moment")
        return super().__getitem__(index)


def test_a_sample_that_failed_once_is_made_again_for_its_next_use(backend, tmp_path):
    log = tmp_path / "log"
    with Loader(Flickering(log), 4, workers=backend, on_error="skip", rotation=KEPT) as loader:
        found = Counter(int(index) for batch in loader for index in batch["index"])
    missing = {index: 3 - found[index] for index in range(24) if found[index] != 3}
    assert missing == {9: 1}
    assert calls(log)[9] in (2, 3)  # and perhaps the next epoch's, which is prefetched


def test_ctrl_c_in_the_middle_loses_and_repeats_nothing(tmp_path):
    """Inline, where it comes in the middle of the dataset."""

    class Interrupted(Augmented):
        def __getitem__(self, index):
            if index == 9 and not (tmp_path / "struck").exists():
                (tmp_path / "struck").touch()
                raise KeyboardInterrupt
            return super().__getitem__(index)

    with Loader(Augmented(24), 4, rotation=KEPT) as oracle:
        (wanted,) = epochs(oracle, 1)
    with Loader(Interrupted(24), 4, rotation=KEPT) as loader:
        iterator, got = iter(loader), []
        while len(got) < len(wanted):
            with contextlib.suppress(KeyboardInterrupt):
                got.append(kept(next(iterator)))
        assert next(iterator, None) is None
    assert_same(got, wanted)


def test_random_numbers_of_the_collate_are_the_batchs_own(backend):
    """Whatever was made, or not, before it."""
    options = {"batch_size": 4, "shuffle": True, "rotation": KEPT, "collate": noisy}
    with Loader(Augmented(24), **options) as oracle, Loader(Augmented(24), workers=backend, **options) as loader:
        wanted = epochs(oracle, 2)
        assert_same(epochs(loader, 2), wanted)
    draws = [batch["draw"] for epoch in wanted for batch in epoch]
    assert len(set(draws)) == len(draws)


def noisy(samples):
    return {"draw": random.random(), "index": [sample["index"] for sample in samples]}
