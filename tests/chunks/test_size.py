"""Memory is bounded by what is open, whatever the size of the dataset."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import cloudpickle
import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
import pytest

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


def read_in(files: Path, megabytes: int, interleave: int) -> dict[str, int]:
    """What a program of its own has read, with that limit on the memory of each of its processes."""
    command = [sys.executable, "-m", "tests.chunks.little_memory", str(files), str(megabytes), str(interleave)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert ran.returncode == 0, ran.stderr
    found: dict[str, int] = json.loads(ran.stdout)
    return found


@pytest.mark.exhaustive  # as the next one, with many files
def test_4_gb_in_300_mb(tmp_path):
    """Contract: bounded memory. 512 files of 8 MB: six of them in slots, one in each of two workers, three programs."""
    write_sparse(tmp_path / "data", 512, 512)
    found = read_in(tmp_path / "data", 300, interleave=1)
    assert found["rows"] == 512 * 512
    assert found["nbytes"] == 4 * 2**30
    assert found["most"] < 300 * MIB


def test_one_file_of_2_gb_in_400_mb(tmp_path):
    """Contract: bounded memory, whatever the size of a file; with four parts of it in a group, as by default."""
    write_sparse(tmp_path / "data", 1, 2**17)
    found = read_in(tmp_path / "data", 400, interleave=4)
    assert found["rows"] == 2**17
    assert found["nbytes"] == 2 * 2**30
    assert found["most"] < 400 * MIB


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_one_row_group_or_record_batch_of_200_mb_in_400_mb(tmp_path, form):
    """It is not read as a whole: pages are streamed, and what is mapped is not kept."""
    rows, width = 50_000, 1024
    noise = np.frombuffer(np.random.default_rng(0).bytes(rows * width * 4), np.int32)
    table = pa.table({"x": pa.FixedSizeListArray.from_arrays(pa.array(noise), width)})
    if form == "parquet":
        pyarrow.parquet.write_table(table, tmp_path / "a.parquet", row_group_size=rows, use_dictionary=False)
    else:
        with pyarrow.ipc.new_file(tmp_path / "a.arrow", table.schema) as writer:
            writer.write_table(table)
    found = read_in(tmp_path / f"a.{form}", 400, interleave=4)
    assert found["rows"] == rows
    assert found["nbytes"] == noise.nbytes
    assert found["most"] < 400 * MIB


def test_workers_do_not_get_the_list_of_files(tmp_path):
    """What is sent to each worker when it starts does not grow with the number of files."""
    sizes = []
    for count in (1, 2000):
        write_chunks(tmp_path / str(count), [1] * count)
        with Loader(Chunks(tmp_path / str(count)), 4) as loader:
            sizes.append(len(cloudpickle.dumps(loader._session._engine._job)))
    assert sizes[0] == sizes[1]
