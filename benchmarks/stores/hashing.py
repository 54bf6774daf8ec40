"""What verifying costs: `python -m benchmarks.stores.hashing` prints two tables.

First the hashes alone, on a buffer that stays in the L2 cache and on buffers that come from DRAM. Then batches out
of a mapped file, where it matters whether a sample is hashed just before it is copied, while it is still in the
cache, or the whole batch is hashed and then copied.
"""

from __future__ import annotations

import mmap
import multiprocessing
import tempfile
import time
import zlib
from collections.abc import Callable
from multiprocessing.synchronize import Barrier
from pathlib import Path
from statistics import median

import numpy as np
import xxhash
from rich.console import Console
from rich.table import Table

_SAMPLE = 224 * 224 * 3
_COUNT = 8000  # 1.2 GB: far beyond any L3
_BATCH = 32
_ROUNDS = 5
_ROUND_S = 0.6

Views = list[np.ndarray]
Fill = Callable[[Views, np.ndarray], None]


def _copy(views: Views, out: np.ndarray) -> None:
    np.stack(views, out=out)


def _hash_each_then_copy_it(views: Views, out: np.ndarray) -> None:
    for place, view in enumerate(views):
        xxhash.xxh3_64_intdigest(view)
        out[place] = view


def _copy_each_then_hash_the_copy(views: Views, out: np.ndarray) -> None:
    for place, view in enumerate(views):
        out[place] = view
        xxhash.xxh3_64_intdigest(out[place])


def _hash_all_then_copy_all(views: Views, out: np.ndarray) -> None:
    for view in views:
        xxhash.xxh3_64_intdigest(view)
    np.stack(views, out=out)


def _crc_each_then_copy_it(views: Views, out: np.ndarray) -> None:
    for place, view in enumerate(views):
        zlib.crc32(view)
        out[place] = view


_FILLS: dict[str, Fill] = {
    "copy only": _copy,
    "xxh3 a sample, copy it": _hash_each_then_copy_it,
    "copy a sample, xxh3 of the copy": _copy_each_then_hash_the_copy,
    "xxh3 the batch, copy the batch": _hash_all_then_copy_all,
    "crc32 a sample, copy it": _crc_each_then_copy_it,
}


def _write_file(path: Path) -> None:
    rows = np.random.default_rng(0).integers(0, 256, (_BATCH, _SAMPLE), np.uint8)
    with path.open("wb") as file:
        for _ in range(_COUNT // _BATCH):
            file.write(rows.data)


def _map_rows(path: Path) -> np.ndarray:
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    rows = np.frombuffer(mapped, np.uint8).reshape(-1, _SAMPLE)
    rows[:, ::4096].max()  # the page tables of this process are filled before anything is measured
    return rows


def _us_a_sample(rows: np.ndarray, fill: Fill, seed: int) -> float:
    order = np.random.default_rng(seed).permutation(len(rows)).reshape(-1, _BATCH)
    out = np.ones((_BATCH, _SAMPLE), np.uint8)
    begin, done = time.perf_counter(), 0
    while time.perf_counter() - begin < _ROUND_S:
        fill([rows[index] for index in order[done % len(order)]], out)
        done += 1
    return (time.perf_counter() - begin) / done / _BATCH * 1e6


def _reader(path: Path, seed: int, barrier: Barrier, results: multiprocessing.Queue) -> None:
    rows = _map_rows(path)
    for turn in range(_ROUNDS):
        for name, fill in _FILLS.items():
            barrier.wait()
            results.put((name, _us_a_sample(rows, fill, seed * 1000 + turn)))


def _read_by(processes: int, path: Path) -> dict[str, float]:
    spawn = multiprocessing.get_context("spawn")
    barrier, results = spawn.Barrier(processes), spawn.Queue()
    family = [spawn.Process(target=_reader, args=(path, seed, barrier, results)) for seed in range(processes)]
    for one in family:
        one.start()
    found: dict[str, list[float]] = {}
    for _ in range(processes * _ROUNDS * len(_FILLS)):
        name, took = results.get()
        found.setdefault(name, []).append(took)
    for one in family:
        one.join()
    return {name: median(values) for name, values in found.items()}


def _gb_a_second(digest: Callable[[np.ndarray], int], buffers: np.ndarray) -> float:
    rates = []
    for _ in range(_ROUNDS):
        begin, done = time.perf_counter(), 0
        while time.perf_counter() - begin < _ROUND_S / 2:
            for buffer in buffers:
                digest(buffer)
            done += len(buffers)
        rates.append(done * _SAMPLE / (time.perf_counter() - begin) / 1e9)
    return median(rates)


def _alone() -> Table:
    table = Table("GB/s on 150,528 bytes", "in L2", "from DRAM", title="The hashes alone", title_justify="left")
    rows = np.random.default_rng(0).integers(0, 256, (2000, _SAMPLE), np.uint8)  # 300 MB, in no cache
    for name, digest in (("xxhash.xxh3_64_intdigest", xxhash.xxh3_64_intdigest), ("zlib.crc32", zlib.crc32)):
        near, far = (_gb_a_second(digest, some) for some in (np.tile(rows[:1], (1, 1)), rows))
        table.add_row(name, f"{near:.1f}", f"{far:.1f}")
    return table


def _out_of_a_file(path: Path) -> Table:
    table = Table("µs a sample, batches of 32 × 150,528 bytes", "1 process", "2 processes, each")
    table.title, table.title_justify = "Random batches out of a mapped file, warm", "left"
    one, two = _read_by(1, path), _read_by(2, path)
    for name in _FILLS:
        table.add_row(name, f"{one[name]:.1f}", f"{two[name]:.1f}")
    return table


def main() -> None:
    console = Console(width=100)
    console.print(_alone())
    with tempfile.TemporaryDirectory(prefix=".stores-", dir=Path.cwd()) as scratch:
        path = Path(scratch) / "rows"
        _write_file(path)
        console.print(_out_of_a_file(path))


if __name__ == "__main__":
    main()
