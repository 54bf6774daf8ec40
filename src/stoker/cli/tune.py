"""``stoker tune``: which workers, how many of them and how much prefetch are best for a dataset, by measurement."""

from __future__ import annotations

import argparse
import json
import os
import sys
from importlib.util import find_spec
from typing import Any

from rich.box import HEAVY_HEAD
from rich.console import Console
from rich.table import Table

from stoker.cli.dataset import found
from stoker.cli.frames import story
from stoker.cli.quarantine import CannotReplay
from stoker.cli.sweep import NoSamples, Outcome, Sweep
from stoker.cli.terminal import INTERRUPTED, add_json, examples, positive, printable

_WIDE = 160  # columns of a file or pipe, where no line is to be broken
_BAR = 30  # characters of the longest bar
_MOST = 32  # workers


def register(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "tune",
        help="find the workers and the prefetch that are best for a dataset",
        description="Loads the dataset inline, with processes and with threads, and prints how fast each is and which "
        "line to write. Takes about a minute. Exit code 2: the dataset cannot be loaded.",
        **examples("stoker tune train.py:dataset --batch-size 64 --step-ms 20"),
    )
    parser.add_argument(
        "dataset", metavar="DATASET", help="MODULE:NAME or PATH.py:NAME, or of a function that makes it"
    )
    parser.add_argument("--batch-size", type=positive, default=32, metavar="N", help="samples in a batch (default 32)")
    parser.add_argument(
        "--step-ms", type=_milliseconds, default=0.0, metavar="MS", help="what a training step takes (default 0)"
    )
    parser.add_argument(
        "--seconds", type=_seconds, default=1.0, metavar="S", help="length of a measurement (default 1)"
    )
    parser.add_argument("--most", type=positive, default=_MOST, metavar="N", help=f"workers to try (default {_MOST})")
    parser.add_argument("--shuffle", action="store_true", help="load in a shuffled order")
    add_json(parser)
    parser.add_argument("--plot", metavar="FILE.png", help="draw the figures; needs matplotlib")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """The whole sweep; returns the exit code."""
    if arguments.plot and find_spec("matplotlib") is None:
        return _fail("--plot needs matplotlib: pip install matplotlib")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # as ``python -m`` has it
    console = Console(highlight=False, markup=False, soft_wrap=True)
    try:
        dataset = found(arguments.dataset, option="")
    except CannotReplay as error:
        return _fail(str(error))
    stderr = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    with stderr.status("") as status:
        sweep = Sweep(
            dataset,
            batch_size=arguments.batch_size,
            step=arguments.step_ms / 1000,
            seconds=arguments.seconds,
            most=arguments.most,
            shuffle=arguments.shuffle,
            on_step=status.update if stderr.is_terminal else stderr.print,
        )
        try:
            sweep.run()
        except KeyboardInterrupt:
            if not any(one.rates for one in sweep.outcomes.values()):
                return INTERRUPTED
        except NoSamples:
            return _fail(f"{arguments.dataset} has no samples, so there is nothing to measure")
        except Exception as error:
            return _fail(f"{arguments.dataset} cannot be loaded:\n{story(error)}")
    _show(console, sweep, arguments)
    if arguments.plot:
        from stoker.cli.sweep_plot import draw

        draw(sweep, arguments.plot)
    return 0


def _show(console: Console, sweep: Sweep, arguments: argparse.Namespace) -> None:
    line = sweep.chosen.setting.line(arguments.batch_size)
    if arguments.json:
        print(json.dumps(_figures(sweep, line, arguments), indent=2))
        return
    if not console.is_terminal:
        console.width = _WIDE
    console.print(_table(console, sweep))
    for one in sweep.outcomes.values():
        if one.error:
            console.print(f"{one.setting.name} failed: {printable(one.error.splitlines()[-1])}")
    auto = [one for one in sweep.outcomes.values() if one.setting.kind == "Auto" and one.rates]
    if auto:
        console.print(f'workers="auto" reaches {auto[0].rate / sweep.best.rate:.0%} of the best.')
    console.print(f"Write: {line}")


def _table(console: Console, sweep: Sweep) -> Table:
    table = Table("workers", box=HEAVY_HEAD if console.is_terminal else None)
    for column in ("prefetch", "samples/s", "waits"):
        table.add_column(column, justify="right")
    table.add_column("")
    for one in sorted(sweep.outcomes.values(), key=_order):
        style = "bold" if one is sweep.chosen else None
        table.add_row(*_row(one, sweep.best.rate), style=style)
    return table


def _order(one: Outcome) -> tuple[int, int, int]:
    return ("Inline", "Threads", "Processes", "Auto").index(one.setting.kind), one.setting.count, one.setting.prefetch


def _row(one: Outcome, best: float) -> tuple[str, str, str, str, str]:
    if not one.rates:
        return one.setting.name, str(one.setting.prefetch), "failed", "", ""
    bar = "█" * max(1, round(_BAR * one.rate / best))
    return one.setting.name, str(one.setting.prefetch), f"{one.rate:,.0f}", f"{one.waiting:.0%}", bar


def _figures(sweep: Sweep, line: str, arguments: argparse.Namespace) -> dict[str, Any]:
    return {
        "dataset": arguments.dataset,
        "batch_size": arguments.batch_size,
        "step_ms": arguments.step_ms,
        "settings": [_as_dict(one) for one in sorted(sweep.outcomes.values(), key=_order)],
        "chosen": _as_dict(sweep.chosen),
        "line": line,
    }


def _as_dict(one: Outcome) -> dict[str, Any]:
    return {
        "workers": one.setting.name,
        "kind": one.setting.kind,
        "count": one.setting.count,
        "prefetch": one.setting.prefetch,
        "samples_per_second": one.rate,
        "rounds": one.rates,
        "waiting": one.waiting,
        "error": one.error,
    }


def _fail(message: str) -> int:
    text = "\n".join(map(printable, message.splitlines()))
    print(f"stoker tune: error: {text}", file=sys.stderr)
    return 2


def _seconds(text: str) -> float:
    number = float(text)
    if not 0 < number < 3600:
        raise argparse.ArgumentTypeError(f"{text}: pass a number of seconds above 0")
    return number


def _milliseconds(text: str) -> float:
    number = float(text)
    if not 0 <= number < 3_600_000:
        raise argparse.ArgumentTypeError(f"{text}: pass a number of milliseconds, 0 or more")
    return number
