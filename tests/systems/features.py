"""What works on every system, run without worker processes: prints what came out, feature by feature, as JSON.

python tests/systems/features.py
"""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
import warnings
from pathlib import Path

import numpy as np

import stoker
from stoker.testing import assert_deterministic, assert_resumable


class Squares:
    """Samples of many kinds, each longer than the last, and one that fails."""

    def __init__(self, fails_at=None):
        self.fails_at = fails_at

    def __len__(self):
        return 40

    def __getitem__(self, index):
        if index == self.fails_at:
            raise ValueError(f"no square of {index}")
        return {"x": np.arange(index + 1) ** 2, "index": index, "name": f"number {index}", "noise": np.random.rand()}


def loader(workers, **options):
    options = {"batch_size": 4, "shuffle": True, "collate": stoker.pad(), **options}
    return stoker.Loader(options.pop("dataset", Squares()), workers=workers, **options)


def plain(batch):
    return stoker.map_leaves(lambda leaf: np.asarray(leaf).tolist(), batch)


def epochs(workers, folder):
    with loader(workers) as made:
        return [plain(batch) for _ in range(2) for batch in made]


def held_batches(workers, folder):
    """All are held while more are made, and slots grow from batch to batch."""
    rows = np.arange(300_000).reshape(30, -1)
    with stoker.Loader(rows, batch_size=3, workers=workers) as made:
        return [int(batch.sum()) for batch in list(made)]


def resume(workers, folder):
    with loader(workers) as made:
        taken = [plain(next(iter(made)))]
        state = json.loads(json.dumps(made.state_dict()))
    with loader(workers) as made:
        made.load_state_dict(state)
        return [*taken, *(plain(batch) for batch in made)]


def errors(workers, folder):
    with loader(workers, dataset=Squares(7)) as made, contextlib.suppress(StopIteration):
        try:
            return [plain(batch) for batch in made]
        except ValueError as error:
            return str(error)


def quarantine(workers, folder):
    path = folder / "left_out.jsonl"
    with loader(workers, dataset=Squares(7), on_error="quarantine", quarantine=path) as made:
        taken = [plain(batch) for batch in made]
    return [taken, [json.loads(line)["index"] for line in path.read_text().splitlines()]]


def stream(workers, folder):
    with stoker.stream(lambda item: np.full(item, item), range(1, 30), workers=workers) as made:
        return [result.tolist() for result in made]


def chunks(workers, folder):
    (folder / "table.csv").write_text("a,b\n" + "".join(f"{row},{row * row}\n" for row in range(100)))
    stoker.split(folder / "table.csv", folder / "parts", count=4)
    with stoker.Loader(stoker.Chunks(str(folder / "parts" / "*.csv")), batch_size=8, workers=workers) as made:
        return sorted(value for batch in made for value in batch["a"].tolist())


def mixture(workers, folder):
    mix = stoker.Mix({"low": np.arange(50), "high": np.arange(100, 150)}, {"low": 3, "high": 1})
    with stoker.Loader(mix, batch_size=8, workers=workers, seed=3) as made:
        return [plain(batch) for batch in made]


def kit(workers, folder):
    assert_deterministic(lambda: loader(workers))
    assert_resumable(lambda: loader(workers))
    return "passed"


def looked_at(workers, folder):
    with loader(workers, watch=True, timeout=30) as made:
        taken = sum(1 for _ in made)
        made.report(folder / "report.html")
        made.trace(folder / "trace.json")
        with contextlib.redirect_stdout(io.StringIO()):
            made.report()
        return [taken, made.stats().batches, (folder / "report.html").stat().st_size > 1000]


FEATURES = (epochs, held_batches, resume, errors, quarantine, stream, chunks, mixture, kit, looked_at)


def main() -> None:
    warnings.simplefilter("error")
    told = {}
    for workers in (stoker.Inline(), stoker.Threads(3)):
        for feature in FEATURES:
            with tempfile.TemporaryDirectory() as folder:
                told[f"{feature.__name__}, {workers}"] = feature(workers, Path(folder))
    print(json.dumps(told))


if __name__ == "__main__":
    main()
