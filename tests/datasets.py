"""Datasets that tests share. Importable by workers, so that they travel by reference as users' own modules do."""

from __future__ import annotations

import dataclasses
import os
import random
import signal
import time
from collections import UserDict, namedtuple
from typing import Any

import numpy as np

Pair = namedtuple("Pair", "left right")


class Doubled(namedtuple("Doubled", "half whole")):
    """A namedtuple with a constructor of its own, which takes other arguments than it has fields."""

    __slots__ = ()

    def __new__(cls, half: Any) -> Doubled:
        return super().__new__(cls, half, 2 * half)


@dataclasses.dataclass
class Record:
    image: Any
    label: Any


class Encoding(UserDict):
    """Of the form of Hugging Face's ``BatchEncoding``: items, which are attributes too, and something beside them."""

    def __init__(
        self, data: Any = None, encoding: Any = None, tensor_type: Any = None, n_sequences: Any = None
    ) -> None:
        super().__init__(data)
        self._encodings = encoding
        self._n_sequences = n_sequences

    def __getattr__(self, name: str) -> Any:
        try:
            return self.data[name]
        except KeyError:
            raise AttributeError(name) from None

    def __getstate__(self) -> dict[str, Any]:
        return {"data": self.data, "encodings": self._encodings}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.data, self._encodings = state["data"], state["encodings"]

    @property
    def encodings(self) -> Any:
        return self._encodings


class Rows:
    """Row i is [i, i, i, i]: easy to check, hard to mistake."""

    def __init__(self, n: int = 100) -> None:
        self.data = np.repeat(np.arange(n), 4).reshape(n, 4)

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> np.ndarray:
        return self.data[index]


class Augmented(Rows):
    """Draws from each global generator, as augmentation does."""

    def __getitem__(self, index: int) -> dict[str, Any]:
        noise = random.random() + np.random.rand() + np.random.randint(1000) + random.randrange(1000)
        return {"row": self.data[index] + noise, "index": index}


class Forest(Rows):
    """A sample with every kind of container and leaf."""

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {
            "array": self.data[index].astype(np.float32),
            "pair": Pair(index, [float(index), str(index)]),
            "record": Record(np.full((2, 3), index, np.uint8), index % 2 == 0),
            "nothing": None,
            "raw": bytes([index % 256]),
            "scalar": np.float16(index),
            "zero_d": np.array(index),
        }


class Encoded(Rows):
    """As a tokenizer gives its samples."""

    def __getitem__(self, index: int) -> Encoding:
        ids = self.data[index]
        return Encoding({"ids": ids, "mask": np.ones(4, bool), "inner": UserDict(n=index)}, encoding=[f"text {index}"])


class Gathering(Rows):
    """Gives whole batches; single samples would be a mistake."""

    def __getitem__(self, index: int) -> np.ndarray:
        raise AssertionError("__getitems__ should have been used")

    def __getitems__(self, indices: list[int]) -> list[np.ndarray]:
        assert type(indices) is list
        assert all(type(index) is int for index in indices)
        return list(self.data[indices])


class Ragged(Rows):
    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"tokens": np.full(index % 5 + 1, index)}


class Growing(Rows):
    """Batches that get bigger and bigger."""

    def __getitem__(self, index: int) -> np.ndarray:
        return np.full((1 + index // 8 * 700,), index, np.int64)


class NeedsArguments(Exception):
    """Cannot be rebuilt from its args."""

    def __init__(self, code: int, *, detail: str) -> None:
        super().__init__(f"code {code}: {detail}")
        self.code = code


class Failing(Rows):
    """Sample 13 raises what it is told to."""

    def __init__(self, n: int = 100, kind: str = "value") -> None:
        super().__init__(n)
        self.kind = kind

    def __getitem__(self, index: int) -> np.ndarray:
        if index == 13:
            self.fail()
        return self.data[index]

    def fail(self) -> None:
        if self.kind == "arguments":
            raise NeedsArguments(7, detail="bad luck")
        if self.kind == "unpicklable":
            error = ValueError("holds a lock")
            error.lock = __import__("threading").Lock()
            raise error
        if self.kind == "local":

            class LocalError(ValueError):
                pass

            raise LocalError("only here")
        if self.kind == "os":
            os.stat("/no/such/file")
        if self.kind == "stop":
            raise StopIteration
        raise ValueError("thirteen")


class Unmakeable(Rows):
    def __init__(self, n: int = 100) -> None:
        raise LookupError("no data here")


class Slow(Rows):
    """The first batch takes long, all others no time."""

    def __getitem__(self, index: int) -> np.ndarray:
        if index == 0:
            time.sleep(0.5)
        return self.data[index]


class KilledOnce(Augmented):
    """Kills its worker at sample 13, the first time only: a file remembers."""

    def __init__(self, marker: str, n: int = 100, number: int = signal.SIGKILL) -> None:
        super().__init__(n)
        self.marker = marker
        self.number = number

    def __getitem__(self, index: int) -> dict[str, Any]:
        if index == 13 and not os.path.exists(self.marker):
            with open(self.marker, "w"):
                os.kill(os.getpid(), self.number)
        return super().__getitem__(index)


class Deadly(Rows):
    """Kills its worker at sample 13, always."""

    def __getitem__(self, index: int) -> np.ndarray:
        if index == 13:
            os._exit(3)
        return self.data[index]
