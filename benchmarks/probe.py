"""Runs one probe in this fresh process: `python -m benchmarks.probe first_batch '{"library": "torch"}'`.

The last line of its output is the JSON of what it measured.
"""

from __future__ import annotations

import importlib
import json
import sys


def main() -> None:
    name, options = sys.argv[1], json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}
    measured: dict[str, float] = importlib.import_module(f"benchmarks.probes.{name}").measure(**options)
    print(json.dumps(measured), flush=True)


if __name__ == "__main__":
    main()
