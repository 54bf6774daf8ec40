"""The datasets that are loaded: plain map-style classes which know no loader."""

from __future__ import annotations

import io
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

TOKENS_FILE = "tokens.bin"
_TOKENS = 16 * 2**20  # 64 MB of int32: more than the caches hold, little enough to stay in the page cache
_WINDOW = 2048


class Dataset(Protocol):
    """What every contender is given."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int) -> Array: ...


def fetch(dataset: Dataset, indices: Sequence[int]) -> list[Array]:
    """The samples of one batch, through `__getitems__` where the dataset has it."""
    many = getattr(dataset, "__getitems__", None)
    if many is not None:
        return list(many(indices))
    return [dataset[index] for index in indices]


class Pool:
    """`length` samples that are views of a few arrays in memory, so that loading costs one copy and no more."""

    def __init__(self, length: int, shape: tuple[int, ...], dtype: str, pool: int) -> None:
        self.length = length
        random = np.random.default_rng(0)
        self.rows = random.integers(0, 255, size=(pool, *shape), dtype=np.uint8).astype(dtype)

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Array:
        row: Array = self.rows[index % len(self.rows)]
        return row


class Documents:
    """`length` sequences of token ids, of log-normal lengths up to a row, that are a few arrays in memory."""

    def __init__(self, length: int, pool: int = 8192) -> None:
        random = np.random.default_rng(0)
        lengths = random.lognormal(np.log(400), 1.0, pool).astype(int).clip(1, _WINDOW)
        self.length = length
        self.documents = [random.integers(1, 50_000, size, dtype=np.int32) for size in lengths.tolist()]

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Array:
        return self.documents[index % len(self.documents)]


class Gather:
    """Rows of an array in memory, fetched a batch at a time as torch's `__getitems__` asks: a list of samples."""

    def __init__(self, length: int, width: int) -> None:
        self.rows = np.random.default_rng(0).random((length, width), dtype=np.float32)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Array:
        row: Array = self.rows[index]
        return row

    def __getitems__(self, indices: Sequence[int]) -> list[Array]:
        return list(self.rows[np.asarray(indices)])


class Tokens:
    """Windows of 2048 tokens at random places of a memory-mapped file, which each process maps for itself."""

    def __init__(self, length: int, path: Path) -> None:
        self.path = path
        self.starts = np.random.default_rng(0).integers(0, _TOKENS - _WINDOW, size=length).tolist()
        self._tokens: Array | None = None

    def __len__(self) -> int:
        return len(self.starts)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_tokens": None}

    def __getitem__(self, index: int) -> Array:
        if self._tokens is None:
            self._tokens = np.memmap(self.path, dtype=np.int32, mode="r")
        start = self.starts[index]
        return self._tokens[start : start + _WINDOW]


def write_tokens(scratch: Path) -> None:
    """Writes the file that `Tokens` reads."""
    tokens = np.random.default_rng(0).integers(0, 50_257, size=_TOKENS, dtype=np.int32)
    tokens.tofile(scratch / TOKENS_FILE)


class Jpegs:
    """JPEGs held as bytes, decoded with Pillow and cropped: what CPU-bound loading usually is."""

    def __init__(self, length: int, distinct: int = 64) -> None:
        self.length = length
        self.files = [_smooth_jpeg(seed) for seed in range(distinct)]

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Array:
        from PIL import Image

        with Image.open(io.BytesIO(self.files[index % len(self.files)])) as image:
            return np.asarray(image.convert("RGB"))[16:240, 16:240]


class Photos(Jpegs):
    """As large and as detailed as ImageNet's, and made smaller once decoded: ten times the work of the smooth ones."""

    def __init__(self, length: int, distinct: int = 64) -> None:
        self.length = length
        self.files = [_smooth_jpeg(seed, (500, 375), grain=12) for seed in range(distinct)]

    def __getitem__(self, index: int) -> Array:
        from PIL import Image

        with Image.open(io.BytesIO(self.files[index % len(self.files)])) as image:
            return np.asarray(image.convert("RGB").resize((224, 224)))


def _smooth_jpeg(seed: int, size: tuple[int, int] = (256, 256), grain: float = 0) -> bytes:
    from PIL import Image

    chance = np.random.default_rng(seed)
    coarse = Image.fromarray(chance.integers(0, 255, size=(16, 16, 3), dtype=np.uint8))
    smooth = np.asarray(coarse.resize(size, Image.Resampling.BICUBIC))
    grained = smooth + chance.normal(0, grain, smooth.shape)
    file = io.BytesIO()
    Image.fromarray(grained.clip(0, 255).astype(np.uint8)).save(file, "JPEG", quality=90)
    return file.getvalue()


class Waiting:
    """Samples that cost no work, only time, as from a network."""

    def __init__(self, length: int, seconds: float) -> None:
        self.length = length
        self.seconds = seconds
        self.sample = np.zeros(256, dtype=np.float32)

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Array:
        time.sleep(self.seconds)
        return self.sample
