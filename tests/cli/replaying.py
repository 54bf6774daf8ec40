"""A folder with a module of datasets; a training run in it, and a replay of what that has quarantined."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

SHAPES = """
    import os, random, sys, time
    import numpy as np

    class Shapes:
        def __init__(self, n=20, *, bad=(), fatal=(), endless=()):
            self.n, self.bad, self.fatal, self.endless = n, bad, fatal, endless

        def __len__(self):
            return self.n

        def __getitem__(self, index):
            if index in self.fatal:
                os._exit(9)
            while index in self.endless:
                print("asleep", flush=True)
                time.sleep(1)  # a signal just before is heard then
            return self.draw(index)

        def draw(self, index):
            if index in self.bad:
                raise ValueError(f"shape {index} has no sides")
            return np.full(3, index)

    class Lucky(Shapes):
        '''Fails for some random numbers, and tells them.'''

        def __getitem__(self, index):
            drawn = random.random(), float(np.random.rand())
            if sum(drawn) < 0.8:
                raise ValueError(f"unlucky numbers {drawn}")
            return super().__getitem__(index)

    class Gathered(Shapes):
        def __getitem__(self, index):
            raise NotImplementedError

        def __getitems__(self, indices):
            return [Shapes.__getitem__(self, index) for index in indices]

    def stack(samples):
        if len(samples) == 5 and samples[0][0] == 5:
            os._exit(9)  # only as a whole
        return np.stack(samples)

    def some():
        return Shapes(20, bad=[3, 13])

    class Holder:
        shapes = Shapes(20, bad=[3, 13])

    shapes = Holder.shapes
    number = 20
"""


def train(folder: Path, dataset: str, options: str = "", epochs: int = 1) -> list[dict]:
    """Runs a training script in that folder, and returns what is in the quarantine file."""
    script = folder / "train.py"
    script.write_text(
        textwrap.dedent(f"""
        import functools, stoker, shapes

        class Own(shapes.Shapes):
            pass

        dataset = {dataset}
        if __name__ == "__main__":
            with stoker.Loader(dataset, on_error="quarantine", {options}) as loader:
                for _ in range({epochs}):
                    for batch in loader:
                        pass
        """)
    )
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60, cwd=folder, check=False)
    assert ran.returncode == 0, ran.stderr
    return [json.loads(line) for line in (folder / "quarantine.jsonl").read_text().splitlines()]


def command(*arguments: str) -> list[str]:
    """Without the current folder on its path, as the installed command is."""
    script = "import sys; from stoker.cli import main; sys.exit(main(sys.argv[1:]))"
    return [sys.executable, "-P", "-c", script, "replay", "quarantine.jsonl", *arguments]


def replay(folder: Path, *arguments: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments), input=typed, capture_output=True, text=True, timeout=60, cwd=folder, check=False
    )


def summary(done: subprocess.CompletedProcess[str]) -> str:
    assert done.stderr == ""
    return done.stdout.splitlines()[-1]
