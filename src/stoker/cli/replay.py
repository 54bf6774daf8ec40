"""``stoker replay``: makes the samples of a quarantine file again, here in the foreground, one by one.

With ``--step`` it makes a batch instead, see ``replay_step.py``.

Each is made as a worker makes it, with the random seed of the batch that it failed in. So it gets the very numbers
that it had then if it was the first of its batch to draw any.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import re
import sys
import traceback
from collections import Counter
from collections.abc import Sequence
from enum import Enum
from typing import Any

from rich.console import Console

from stoker.cli import replay_step
from stoker.cli.dataset import datasets
from stoker.cli.debugger import debug, has_left_debugger
from stoker.cli.frames import story, trimmed
from stoker.cli.quarantine import CannotReplay, QuarantinedSample, read
from stoker.cli.terminal import INTERRUPTED, add_json, examples, output, print_json
from stoker.redaction import REDACTED, redacted_text
from stoker.sources import Indexed
from stoker.workers.failure import error_line
from stoker.workers.randomness import BorrowedGenerators

_STDERR = 2  # the descriptor: what a crash writes to, whatever sys.stderr is by then
_LISTED = 8  # samples that are named in a line
_ADDRESS = re.compile(r"0x[0-9a-f]+")  # in the repr of many an object, and never the same


class Outcome(Enum):
    """What became of a sample: said of one, said of several, and the colour of its line."""

    SAME = "fails as before", "fail as before", "red"
    OTHER = "fails with another error", "fail with another error", "yellow"
    WORKS = "works now", "work now", "green"
    STOPPED = "was interrupted", "were interrupted", "yellow"


def register(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "replay",
        help="make the samples of a quarantine file, or the batch of a step, again",
        description="The exit code is 0 if all samples work now.",
        **examples(
            "stoker replay quarantine.jsonl",
            "stoker replay quarantine.jsonl --index 17 --pdb",
            "stoker replay state.json --dataset train.py:Images --epoch 3 --step 1200",
        ),
    )
    parser.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        help='the file that a Loader with on_error="quarantine" has written; with --step, its state_dict() as JSON',
    )
    parser.add_argument(
        "--dataset", metavar="NAME", help="MODULE:NAME or PATH.py:NAME of the dataset, or of a function that makes it"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--pdb", action="store_true", help="open the debugger where a sample fails; q skips it")
    add_json(form)
    parser.add_argument("--index", type=int, nargs="+", action="extend", metavar="I", help="make only these samples")
    replay_step.add_options(parser)
    parser.set_defaults(run=run, refuse=parser.error)


def run(arguments: argparse.Namespace) -> int:
    """Replays the file; returns the exit code."""
    console = output(quiet=arguments.json)
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # as ``python -m`` has it
    try:
        if arguments.step is not None:
            return replay_step.run(arguments)
        if arguments.file is None:
            arguments.refuse("there is nothing to replay: pass a quarantine file, or --step and --dataset")
        records = _wanted(read(arguments.file), arguments.index, arguments.file)
        if not records:
            console.print(f"{arguments.file} is empty: no sample has failed")
            if arguments.json:
                print_json({"samples": []})
            return 0
        opened = datasets(records, arguments.dataset, arguments.file)
    except CannotReplay as error:
        print(f"stoker replay: error: {_printable(str(error))}", file=sys.stderr)
        return 2
    replay = Replay(console, opened, use_pdb=arguments.pdb)
    code = replay.run(records)
    if arguments.json:
        print_json({"samples": replay.results})
    return code


def _wanted(records: list[QuarantinedSample], indices: list[int] | None, file: str) -> list[QuarantinedSample]:
    if indices is None:
        return records
    unknown = set(indices).difference(record.index for record in records)
    if unknown:
        raise CannotReplay(f"{file} has no sample {', '.join(map(str, sorted(unknown)))}")
    return [record for record in records if record.index in indices]


class Replay:
    """Makes samples and says what became of them."""

    def __init__(self, console: Console, opened: dict[str, Indexed], *, use_pdb: bool) -> None:
        self.results: list[dict[str, Any]] = []  # as JSON can hold them
        self._console = console
        self._opened = opened
        self._use_pdb = use_pdb
        self._outcomes: Counter[Outcome] = Counter()
        self._told: dict[tuple[tuple[str, int | None], ...], int] = {}  # frames, and the sample they were printed for

    def run(self, records: Sequence[QuarantinedSample]) -> int:
        """All of them, those that may end this process last. Returns the exit code."""
        ordered = sorted(records, key=lambda record: record.killed_its_worker)
        killers = [record for record in ordered if record.killed_its_worker]
        for number, record in enumerate(ordered, 1):
            if killers and record is killers[0]:
                self._warn(killers)
            self._replay(record, f"{number}/{len(ordered)}")
            if Outcome.STOPPED in self._outcomes:
                break
        self._print(_summary(len(ordered), self._outcomes))
        if Outcome.STOPPED in self._outcomes:
            return INTERRUPTED
        return 1 if self._outcomes[Outcome.SAME] or self._outcomes[Outcome.OTHER] else 0

    def _warn(self, killers: Sequence[QuarantinedSample]) -> None:
        faulthandler.enable(_STDERR)
        listed = ", ".join(str(record.index) for record in killers[:_LISTED]) + ", ..." * (len(killers) > _LISTED)
        self._print(
            f"What comes now (sample {listed}) had killed its worker or made it hang, and may do so to this process. "
            f"--index I replays a single one; Ctrl-C shows where it hangs."
        )

    def _replay(self, record: QuarantinedSample, number: str) -> None:
        name = f"{number}  sample {record.index} of epoch {record.epoch}"
        if record.killed_its_worker:
            self._print(f"{name}: begins")  # perhaps the last that is heard of it
        error = _made(self._opened[record.dataset_key], record)
        outcome = _outcome(error, record)
        self._outcomes[outcome] += 1
        self.results.append(_result(outcome, error, record))
        self._print(f"{name}: {outcome.value[0]}{_details(outcome, error, record)}", style=outcome.value[2])
        if error is not None:
            self._print_traceback(error, record)
            if self._use_pdb:
                debug(error)

    def _print_traceback(self, error: BaseException, record: QuarantinedSample) -> None:
        """Once for each stack: the samples of a broken file all fail in the same line."""
        frames = tuple((frame.filename, frame.lineno) for frame in traceback.extract_tb(trimmed(error)))
        if frames in self._told:
            self._print(f"  in the same place as sample {self._told[frames]}")
            return
        self._told[frames] = record.index
        self._print(story(error), style="dim")

    def _print(self, text: str, style: str | None = None) -> None:
        self._console.print(_printable(text), style=style)


def _made(dataset: Indexed, record: QuarantinedSample) -> BaseException | None:
    """Makes one sample as a worker would; returns what it raised, if it did."""
    generators = BorrowedGenerators()
    with generators.lent():
        generators.seed(record.seed)
        skipped = dataset.fetch_skipping([record.index]).skipped
    return skipped[0].error if skipped else None


def _outcome(error: BaseException | None, record: QuarantinedSample) -> Outcome:
    if error is None:
        return Outcome.WORKS
    if isinstance(error, KeyboardInterrupt) or has_left_debugger(error):
        return Outcome.STOPPED
    before, now = (_ADDRESS.sub("0x", text) for text in (record.error, redacted_text(error_line(error))))
    return Outcome.SAME if _is_like(now, before) else Outcome.OTHER


def _is_like(text: str, redacted: str) -> bool:
    """Whether they are the same, but for what was redacted in the second one."""
    if REDACTED not in redacted:
        return text == redacted
    return re.fullmatch(".+".join(map(re.escape, redacted.split(REDACTED))), text, re.DOTALL) is not None


def _details(outcome: Outcome, error: BaseException | None, record: QuarantinedSample) -> str:
    before = record.error.partition("\n")[0]
    if outcome is Outcome.SAME:
        return f": {before}"
    if outcome is Outcome.OTHER and error is not None:
        return f": {error_line(error).partition(chr(10))[0]} (before: {before})"
    return f" (before: {before})" if record.killed_its_worker else ""


def _result(outcome: Outcome, error: BaseException | None, record: QuarantinedSample) -> dict[str, Any]:
    now = None if error is None else _printable(error_line(error))
    frames = None if error is None else _printable(story(error))
    own = {"index": record.index, "epoch": record.epoch, "outcome": outcome.name.lower()}
    return own | {"error": now, "before": _printable(record.error), "traceback": frames}


def _summary(samples: int, outcomes: Counter[Outcome]) -> str:
    parts = [f"{count} {kind.value[count > 1]}" for kind in Outcome if (count := outcomes[kind])]
    if left := samples - outcomes.total():
        parts.append(f"{left} not tried")
    return f"{samples} sample{'s' * (samples != 1)}: {', '.join(parts)}"


def _printable(text: str) -> str:
    """Names of files may have bytes that are no text."""
    return text.encode(errors="backslashreplace").decode()
