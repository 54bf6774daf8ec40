"""JSON lines, all of them in one epoch: memory of consumer and workers on the way.

The files are written by a process of their own, so that nothing of it counts.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import threading
from pathlib import Path

from benchmarks import memory
from benchmarks.chunk_files import write_json_lines
from benchmarks.workloads import CHUNK_FOLDER, STREAMED

_EVERY_S = 0.1


def measure(gigabytes: float) -> dict[str, float]:
    """`at 0`, `pss 0`, `at 1` and so on: bytes that were read, and PSS of the tree then."""
    with tempfile.TemporaryDirectory(prefix="stoker-bench-") as scratch:
        writing = multiprocessing.get_context("spawn").Process(target=write_json_lines, args=(Path(scratch), gigabytes))
        writing.start()
        writing.join()
        folder = Path(scratch) / CHUNK_FOLDER
        samples, found = _read(folder)
        total = sum(file.stat().st_size for file in folder.iterdir())
    each = total / samples
    return {key: float(value) for n, (at, pss) in enumerate(found) for key, value in _named(n, at * each, pss)}


def _named(number: int, at: float, pss: int) -> tuple[tuple[str, float], tuple[str, float]]:
    return (f"at {number}", at), (f"pss {number}", pss)


def _read(folder: Path) -> tuple[int, list[tuple[int, int]]]:
    """The number of samples, and from time to time how many there have been, and the memory."""
    import stoker

    found: list[tuple[int, int]] = []
    samples, over = 0, threading.Event()

    def look() -> None:
        while not over.wait(_EVERY_S):
            found.append((samples, memory.pss_bytes(os.getpid())))

    workload = STREAMED["jsonl"]
    looking = threading.Thread(target=look)
    with stoker.Loader(stoker.Chunks(folder), workload.batch_size, shuffle=True, workers=workload.workers) as loader:
        looking.start()
        try:
            for batch in loader:
                samples += len(batch["id"])
        finally:
            over.set()
            looking.join()
    return samples, found
