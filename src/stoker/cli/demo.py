"""``stoker demo``: trains a small classifier on augmented digits, fed by Stoker and then by a plain loop."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.table import Table

import stoker
from stoker.cli.terminal import Bar, add_json, examples, failed, positive, print_json

if TYPE_CHECKING:  # they need scikit-learn, which a user of the library need not have
    from stoker.cli.classifier import Classifier
    from stoker.cli.digits import Digits

Batch = dict[str, Any]


@dataclass(frozen=True)
class Epoch:
    """One pass over the data: what it cost and what it brought."""

    samples: int
    seconds: float
    loss: float


def register(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "demo",
        help="train a small classifier, with and without Stoker",
        **examples("stoker demo --epochs 2 --workers 2"),
    )
    parser.add_argument("--epochs", type=positive, default=4)
    parser.add_argument("--workers", type=positive, default=2, help="the number of worker processes")
    parser.add_argument("--batch-size", type=positive, default=64)
    parser.add_argument("--samples", type=positive, default=6000, help="the number of augmented digits in an epoch")
    parser.add_argument("--report", default="stoker-report.html", metavar="FILE", help="where to write the report")
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """The whole demo; returns the exit code."""
    if find_spec("sklearn") is None:
        return failed("demo", 'it trains on scikit-learn\'s digits: pip install "stoker[demo]"', 1)
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # comes with scikit-learn

    with threadpool_limits(1):  # threads of the matrix library would fight the workers for the cores
        found = _train_both_ways(Console(highlight=False, markup=False, quiet=arguments.json), arguments)
    if arguments.json:
        print_json(found)
    return 0


def _train_both_ways(console: Console, arguments: argparse.Namespace) -> dict[str, Any]:
    """Also returns what it has printed."""
    from stoker.cli.digits import SIDE, load

    dataset, images, labels = load(arguments.samples)
    batch_size, workers, epochs = arguments.batch_size, arguments.workers, arguments.epochs
    console.print(f"{len(dataset):,} augmented digits an epoch, {SIDE} x {SIDE} pixels; {workers} workers")

    model, fed = _new_classifier(), []
    loader: stoker.Loader[Batch]
    with stoker.Loader(dataset, batch_size, shuffle=True, workers=stoker.Processes(workers)) as loader:
        for number in range(1, epochs + 1):
            fed.append(_train(console, f"epoch {number}/{epochs}", model, loader, len(dataset)))
            console.print(f"  held-out accuracy {model.accuracy(images, labels):.1%}")
        stats = loader.stats()
        loader.report(arguments.report)

    batches = _plain_loop(dataset, batch_size)
    plain = [_train(console, "plain loop", _new_classifier(), batches, len(dataset))]
    console.print(_comparison(f"Stoker, {workers} workers", _pace(fed), _pace(plain)))
    report = os.path.abspath(arguments.report)
    console.print(f"Diagnosis: {stats.diagnosis}")
    console.print(f"Report: {report} (open it in a browser)", soft_wrap=True)
    accuracy = model.accuracy(images, labels)
    paces = {"samples_per_second": _pace(fed), "plain_samples_per_second": _pace(plain)}
    figures = {"epochs": [asdict(epoch) for epoch in fed], "accuracy": accuracy, **paces, "stats": stats.to_dict()}
    return {**figures, "report": report}


def _new_classifier() -> Classifier:
    from stoker.cli.classifier import Classifier
    from stoker.cli.digits import CLASSES, SIDE

    return Classifier(inputs=SIDE * SIDE, hidden=64, classes=CLASSES)


def _plain_loop(dataset: Digits, batch_size: int) -> Iterator[Batch]:
    """What one writes without a loader: shuffle, fetch, stack."""
    order = np.random.permutation(len(dataset))
    for start in range(0, len(dataset), batch_size):
        samples = [dataset[int(index)] for index in order[start : start + batch_size]]
        yield {key: np.stack([sample[key] for sample in samples]) for key in samples[0]}


def _train(console: Console, name: str, model: Classifier, batches: Iterable[Batch], total: int) -> Epoch:
    """One epoch, with a live bar where there is a terminal and one line of summary anywhere."""
    losses: list[float] = []
    seen, start = 0, perf_counter()
    with _bar(console) as progress:
        task = progress.add_task(name, total=total, loss=0.0, pace=0.0)
        for batch in batches:
            losses.append(model.train(batch["image"], batch["label"]))
            seen += len(batch["label"])
            progress.update(task, completed=seen, loss=losses[-1], pace=seen / (perf_counter() - start))
    epoch = Epoch(seen, perf_counter() - start, float(np.mean(losses)))
    console.print(f"{name}: loss {epoch.loss:.3f}, {_pace([epoch]):,.0f} samples/s")
    return epoch


def _bar(console: Console) -> Bar:
    figures = TextColumn("loss {task.fields[loss]:.3f}  {task.fields[pace]:,.0f} samples/s")
    return Bar(console, TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), figures)


def _pace(epochs: list[Epoch]) -> float:
    """Samples a second over all of them, the start of the workers included."""
    return sum(epoch.samples for epoch in epochs) / sum(epoch.seconds for epoch in epochs)


def _comparison(name: str, fed: float, plain: float) -> Table:
    table = Table("loading", title="Loading and training together")
    table.add_column("samples/s", justify="right")
    table.add_column("speed-up", justify="right")
    table.add_row("plain loop", f"{plain:,.0f}", "1.00 x")
    table.add_row(name, f"{fed:,.0f}", f"{fed / plain:.2f} x")
    return table
