"""The chunk files that are read: JSON lines, Parquet and tars of JPEGs, written once a race."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np

from benchmarks.datasets import Jpegs
from benchmarks.workloads import CHUNK_FOLDER

CHUNK_BYTES = 8 * 10**6
FEATURES = 64
_PROSE = 2**22  # characters that the texts are cut out of
_TEXT = 400, 800  # characters of a text, 600 on average
_RECORD_BYTES = 670  # of JSON, with id, label and score
_ROW_BYTES = FEATURES * 4 + 12  # of Parquet; its label takes less than a byte
_TARS, _IN_A_TAR = 64, 100


class _Record(msgspec.Struct):
    id: int
    text: str
    label: int
    score: float


def write_json_lines(scratch: Path, gigabytes: float) -> None:
    """Records with an id, a text of about 600 characters, a label and a score."""
    encode = msgspec.json.Encoder().encode_lines
    chance, prose = np.random.default_rng(0), _prose()

    def chunk(file: Path, number: int) -> None:
        count = CHUNK_BYTES // _RECORD_BYTES
        starts = chance.integers(0, len(prose) - _TEXT[1], count)
        ends = starts + chance.integers(*_TEXT, count)
        ids = range(number * count, (number + 1) * count)
        texts = [prose[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
        labels, scores = chance.integers(0, 10, count).tolist(), chance.random(count).tolist()
        file.write_bytes(encode(map(_Record, ids, texts, labels, scores)))

    _write(scratch, "jsonl", gigabytes, chunk)


def write_parquet(scratch: Path, gigabytes: float) -> None:
    """Rows with 64 float32 features, a label and an id."""
    import pyarrow
    from pyarrow import parquet

    chance, count = np.random.default_rng(0), CHUNK_BYTES // _ROW_BYTES

    def chunk(file: Path, number: int) -> None:
        features = chance.standard_normal(count * FEATURES, dtype=np.float32)
        columns = {
            "id": np.arange(number * count, (number + 1) * count),
            "features": pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(features), FEATURES),
            "label": chance.integers(0, 10, count),
        }
        # A dictionary of features that are all different would only slow down writing, and reading for everyone.
        parquet.write_table(pyarrow.table(columns), file, use_dictionary=["label"])

    _write(scratch, "parquet", gigabytes, chunk)


def write_tars(scratch: Path, _: float) -> None:
    """WebDataset's archives: a JPEG and a label a sample."""
    folder = _made(scratch)
    jpegs = Jpegs(_TARS * _IN_A_TAR, distinct=256).files
    for number in range(_TARS):
        with tarfile.open(folder / f"{number:05}.tar", "w") as archive:
            for sample in range(number * _IN_A_TAR, (number + 1) * _IN_A_TAR):
                _add(archive, f"{sample:08}.jpg", jpegs[sample % len(jpegs)])
                _add(archive, f"{sample:08}.cls", str(sample % 10).encode())


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))


def _write(scratch: Path, ending: str, gigabytes: float, chunk: Callable[[Path, int], None]) -> None:
    folder = _made(scratch)
    for number in range(max(round(gigabytes * 1e9 / CHUNK_BYTES), 4)):  # two for each worker, however little is asked
        chunk(folder / f"{number:05}.{ending}", number)


def _made(scratch: Path) -> Path:
    folder = scratch / CHUNK_FOLDER
    folder.mkdir()
    return folder


def _prose() -> str:
    """Words of small letters, five each on average."""
    chance = np.random.default_rng(0)
    letters = chance.integers(ord("a"), ord("z") + 1, _PROSE, dtype=np.uint8)
    letters[chance.random(_PROSE) < 1 / 6] = ord(" ")
    return letters.tobytes().decode()
