"""What a stranger tries first, run by `make package` with the wheel and its own dependencies alone.

python tests/package/try_installed.py
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import stoker


def main() -> None:
    where = Path(stoker.__file__).parent
    if "site-packages" not in where.parts:
        sys.exit(f"this tries an installed wheel, and stoker was imported from {where}")
    assert stoker.__version__ == importlib.metadata.version("stoker"), "the version is said twice, and differently"
    assert (where / "py.typed").is_file(), "py.typed is not in the wheel: type checkers would not look at it"
    assert importlib.util.find_spec("torch") is None, "this environment is not clean"
    with stoker.Loader({"x": np.arange(100)}, batch_size=10, shuffle=True, workers=2) as loader:
        assert sorted(int(x) for batch in loader for x in batch["x"]) == list(range(100))
        with tempfile.TemporaryDirectory() as folder:
            loader.report(Path(folder) / "report.html")  # which needs the page's own files
            assert "<svg" in (Path(folder) / "report.html").read_text()
    for command in (["-m", "stoker", "--version"], ["-m", "stoker", "doctor", "--json"]):
        run = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)
        assert not run.stderr.strip(), f"{command}: {run.stderr}"
    print(f"stoker {stoker.__version__} works from its wheel, on Python {sys.version.split()[0]}")


if __name__ == "__main__":
    main()
