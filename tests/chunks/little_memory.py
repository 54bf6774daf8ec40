"""A program: reads gigabytes of chunk files with little memory, and says how much of it was in use at most.

python -m tests.chunks.little_memory FILES LIMIT_IN_MB INTERLEAVE
"""

from __future__ import annotations

import json
import resource
import sys

import numpy as np
import psutil

import stoker


def pss() -> int:
    """Bytes of this process and its children; what they share is counted once."""
    here = psutil.Process()
    total = 0
    for process in [here, *here.children(recursive=True)]:
        try:
            total += process.memory_full_info().pss
        except psutil.Error:
            continue  # it has just ended
    return total


def main(files: str, limit: int, interleave: int) -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))  # inherited by workers
    try:
        np.ones(limit, np.uint8)
        raise SystemExit("the limit is none")
    except MemoryError:
        pass
    rows = nbytes = most = 0
    with stoker.Loader(stoker.Chunks(files, interleave=interleave), 64, shuffle=True, workers=2) as loader:
        for number, batch in enumerate(loader):
            arrays = list(batch.values()) if isinstance(batch, dict) else [batch]
            rows += len(arrays[0])
            nbytes += sum(array.nbytes for array in arrays)
            if number % 200 == 100:
                most = max(most, pss())
    print(json.dumps({"rows": rows, "nbytes": nbytes, "most": most}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) * 2**20, int(sys.argv[3]))
