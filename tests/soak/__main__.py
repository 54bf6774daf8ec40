"""``python -m tests.soak --minutes 5``: what was delivered and survived; exits 1 if anything was lost or changed."""

from __future__ import annotations

import argparse
import json
import logging
import random
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from tests.soak.holdings import Holdings
from tests.soak.life import KINDS, Life, draw_life
from tests.soak.reading import Reading
from tests.soak.sharding import Sharding
from tests.soak.streaming import Streaming
from tests.soak.tally import Tally

_PATIENCE_S = 120.0  # for a life: one that takes longer hangs
_WARM_UP = -1  # the number of a life before the others: what is imported once is kept for good
_WRONG_ALLOWED = 10  # messages; then there is enough to look into


def main(argv: Sequence[str] | None = None) -> int:
    options = _arguments(argv)
    logging.getLogger("stoker").setLevel(logging.CRITICAL)  # each death would be a line
    tally, console = Tally(options.seed), Console()
    console.print(f"soak: {options.minutes:g} minutes, seed {options.seed}")
    _live_number(_WARM_UP, tally, "killed")
    tally.start = Holdings.now()
    began = time.monotonic()
    if options.life is not None:
        _live_number(options.life, tally, options.kind)
    else:
        _soak(tally, console, options)
    tally.minutes = (time.monotonic() - began) / 60
    tally.end = Holdings.now()
    console.print(tally.table())
    for words in tally.wrong:
        console.print(words, markup=False, highlight=False)
    if options.json:
        options.json.write_text(json.dumps(tally.as_json(), indent=2) + "\n")
    return 0 if tally.is_clean and not tally.has_leaked else 1


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of all that is not timing")
    parser.add_argument("--kind", choices=sorted(KINDS), help="only lives of this kind")
    parser.add_argument("--life", type=int, help="only this one, as in the report of a failure")
    parser.add_argument("--json", type=Path, help="a file for the figures")
    return parser.parse_args(argv)


def _soak(tally: Tally, console: Console, options: argparse.Namespace) -> None:
    seconds = 60 * options.minutes
    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    # Not refreshed by a thread: start="fork" would take it along.
    with Progress(*columns, console=console, auto_refresh=False) as progress:
        task = progress.add_task("", total=seconds)
        began, number = time.monotonic(), 0
        while (elapsed := time.monotonic() - began) < seconds and len(tally.wrong) < _WRONG_ALLOWED:
            progress.update(task, completed=elapsed, description=tally.line(), refresh=True)
            _live_number(number, tally, options.kind)
            number += 1


def _live_number(number: int, tally: Tally, kind: str | None) -> None:
    """One life, by its number: it depends on nothing that was before it."""
    chance = random.Random(f"{tally.seed}/{number}")
    life = draw_life(chance) if kind is None else KINDS[kind](chance)
    known = len(tally.wrong)
    try:
        _live(life, chance, tally)
    except Exception:
        tally.errors += 1
        tally.wrong.append(traceback.format_exc())
    if len(tally.wrong) > known:
        again = f"--seed {tally.seed} --life {number}" + (f" --kind {kind}" if kind else "")
        tally.wrong.append(f"in life {number} (again: python -m tests.soak {again}): {life}")


def _live(life: Life, chance: random.Random, tally: Tally) -> None:
    tally.lives[life.kind] += 1
    tally.kept[life.keep.what] += 1
    previous = signal.signal(signal.SIGALRM, _give_up)
    signal.setitimer(signal.ITIMER_REAL, _PATIENCE_S)
    try:
        with tempfile.TemporaryDirectory() as folder:
            _reader_of(life)(life, chance, tally, Path(folder)).run()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def _reader_of(life: Life) -> Any:
    if life.torch:
        from tests.soak.dropping_in import DroppingIn  # which takes seconds to import torch

        return DroppingIn
    return Sharding if life.shards else Streaming if life.items else Reading


def _give_up(*_: object) -> None:
    raise TimeoutError(f"this life has taken more than {_PATIENCE_S:g} s: it hangs")


if __name__ == "__main__":
    sys.exit(main())
