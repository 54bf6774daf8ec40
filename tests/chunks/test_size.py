"""Memory is bounded by what is open, whatever the size of the dataset."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import cloudpickle
import numpy as np

from stoker import Chunks, Loader
from tests.chunks.files import write_chunks

ROOT = Path(__file__).parents[2]
MIB = 2**20


def write_sparse(folder: Path, files: int, rows: int) -> None:
    """Arrays of zeros, 16 KB a row, that take no room on disk."""
    folder.mkdir()
    for number in range(files):
        with open(folder / f"{number:04}.npy", "wb") as file:
            header = {"descr": "<f4", "fortran_order": False, "shape": (rows, 4096)}
            np.lib.format.write_array_header_1_0(file, header)
            file.truncate(file.tell() + rows * 4096 * 4)


def test_4_gb_in_300_mb(tmp_path):
    """Contract: bounded memory. 512 files of 8 MB: six of them in slots, one in each of two workers, three programs."""
    write_sparse(tmp_path / "data", 512, 512)
    command = [sys.executable, "-m", "tests.chunks.little_memory", str(tmp_path / "data"), "300"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["rows"] == 512 * 512
    assert found["nbytes"] == 4 * 2**30
    assert found["most"] < 300 * MIB


def test_workers_do_not_get_the_list_of_files(tmp_path):
    """What is sent to each worker when it starts does not grow with the number of files."""
    sizes = []
    for count in (1, 2000):
        write_chunks(tmp_path / str(count), [1] * count)
        with Loader(Chunks(tmp_path / str(count)), 4) as loader:
            sizes.append(len(cloudpickle.dumps(loader._flow.session._job)))
    assert sizes[0] == sizes[1]
