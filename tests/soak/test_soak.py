"""The soak itself: it runs, and it would tell if anything were lost, repeated or changed."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from stoker import Loader
from tests.soak.dataset import Troubled, rows
from tests.soak.ledger import Ledger, Verdict
from tests.soak.life import KINDS, draw_life
from tests.soak.sharding import rounds

ROOT = Path(__file__).parents[2]


def batch(*indices: int) -> dict[str, np.ndarray]:
    at = np.array(indices)
    return {"index": at, "row": rows(at, 4), "noise": at / 7}


def books(*, in_order: bool = True) -> Ledger:
    ledger = Ledger(in_order=in_order)
    for indices in ((0, 1), (2, 3), (4,)):
        ledger.expect_batch(0, batch(*indices))
    return ledger


@pytest.mark.parametrize(
    ("got", "in_order", "verdict"),
    [
        ([(0, 1), (2, 3), (4,)], True, (0, 0, 0)),
        ([(0, 1), (4,)], True, (2, 0, 0)),
        ([(0, 1), (2, 3), (2, 3), (4,)], True, (0, 2, 0)),
        ([(0, 1), (2, 3), (4,), (9,)], True, (0, 1, 0)),
        ([(0, 1), (3,), (3,), (4,)], True, (1, 1, 0)),
        ([(0, 1), (4,), (2, 3)], True, (0, 0, 3)),
        ([(0, 1), (4,), (2, 3)], False, (0, 0, 0)),
        ([(0,), (1, 2, 3), (4,)], False, (0, 0, 4)),
        ([], True, (5, 0, 0)),
    ],
)
def test_the_ledger_counts_lost_repeated_and_misplaced_samples(got, in_order, verdict):
    ledger = books(in_order=in_order)
    for indices in got:
        ledger.note(0, batch(*indices))
    assert ledger.verdict() == Verdict(*verdict)
    assert bool(ledger.details) == any(verdict)


@pytest.mark.parametrize("part", ["row", "noise"])
def test_the_ledger_sees_a_value_that_changes_at_once_or_while_it_is_held(part):
    ledger, bad = books(), batch(0, 1)
    bad[part][1] += 1
    ledger.note(0, bad)
    held = batch(2, 3)
    ledger.note(0, held)
    held[part][:] = 0
    ledger.check(0, held)
    ledger.note(0, batch(4))
    assert ledger.verdict() == Verdict(0, 0, 3)


def test_what_a_crash_forgets_does_not_count():
    ledger = books()
    ledger.note(0, batch(0, 1))
    mark = ledger.mark
    ledger.note(0, batch(2, 3))
    ledger.rewind(mark)
    ledger.note(0, batch(2, 3))
    ledger.note(0, batch(4))
    assert ledger.verdict() == Verdict(0, 0, 0)


@pytest.mark.parametrize("drop_last", [False, True])
def test_the_plain_words_about_shards_are_those_of_the_loader(drop_last):
    for length, size, count in [(20, 3, 2), (21, 4, 3), (5, 2, 4), (24, 3, 4), (7, 1, 3)]:
        plain = list(rounds(list(range(length)), 0, size, count, drop_last))
        for shard in range(count):
            with Loader(np.arange(length), size, shard=(shard, count), drop_last=drop_last) as loader:
                assert [tuple(got.tolist()) for got in loader] == [cut[shard] for cut in plain]


def test_a_life_depends_on_its_seed_alone():
    for seed in range(50):
        assert draw_life(random.Random(seed)) == draw_life(random.Random(seed))
    drawn = {draw_life(random.Random(seed)).kind for seed in range(200)}
    assert drawn | {"dropped_in"} == set(KINDS)  # which needs torch


def test_the_tamed_dataset_fails_where_the_other_kills_or_hangs():
    tamed = Troubled(10, failing=frozenset({1}), deadly=frozenset({2}), hanging=frozenset({3})).tamed()
    for index in (1, 2, 3):
        with pytest.raises(ValueError, match=f"sample {index} fails"):
            tamed[index]
    assert tamed[4]["index"] == 4


def soak(tmp_path: Path, *arguments: str, sabotage: str = "") -> tuple[int, dict]:
    code = (
        f"import sys\nfrom tests.soak.__main__ import main\n{textwrap.dedent(sabotage)}\nsys.exit(main(sys.argv[1:]))"
    )
    figures = tmp_path / "figures.json"
    ran = subprocess.run(
        [sys.executable, "-c", code, *arguments, "--json", figures],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert figures.exists(), ran.stdout + ran.stderr
    return ran.returncode, json.loads(figures.read_text())


def test_a_short_soak_finds_nothing_wrong(tmp_path):
    code, figures = soak(tmp_path, "--minutes", "0.08", "--seed", "3")
    assert figures["wrong"] == []
    assert (figures["lost"], figures["repeated"], figures["changed"]) == (0, 0, 0)
    assert not figures["leaked"]
    assert figures["batches"] > 0
    assert sum(figures["faults"].values()) > 0
    assert code == 0


@pytest.mark.parametrize(
    ("name", "deed"),
    [
        ("lost", "batch = take(self)"),
        ("changed", "batch['row'] += 1"),
        ("errors", "raise RuntimeError('sabotage')"),
    ],
)
def test_a_soak_fails_if_something_goes_wrong(tmp_path, name, deed):
    sabotage = f"""
        from stoker import Inline
        from stoker.loader import Iteration
        take, taken = Iteration.__next__, [0]

        def bad(self):
            batch = take(self)
            taken[0] += 1
            if taken[0] % 20 == 19 and not isinstance(self._session._settings.workers, Inline):
                {deed}
            return batch

        Iteration.__next__ = bad
    """
    code, figures = soak(tmp_path, "--minutes", "0.02", "--seed", "3", "--kind", "killed", sabotage=sabotage)
    assert figures[name] > 0
    assert figures["wrong"]
    assert code == 1
