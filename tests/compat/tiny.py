"""Loaders in tinyloader's manner. Importable by workers, so that they travel by reference as users' own modules do."""

from __future__ import annotations

import os
import signal
from typing import Any

import numpy as np

from stoker.compat.tinyloader import Loader


class Numbers(Loader):
    """Item n becomes (n, n, n), as numpy arrays. Knows which process did what, and how often it was shut down."""

    def __init__(self) -> None:
        self.consumer = os.getpid()
        self.shutdowns = 0

    def make_request(self, item: int) -> int:
        assert os.getpid() == self.consumer
        return item

    def load(self, request: int) -> Any:
        return np.full(3, request), np.array(os.getpid())

    def post_process(self, response: Any) -> Any:
        assert os.getpid() == self.consumer
        return response

    def shutdown(self) -> None:
        assert os.getpid() == self.consumer
        self.shutdowns += 1


class Failing(Numbers):
    """Raises over item 5."""

    def load(self, request: int) -> Any:
        if request == 5:
            raise KeyError("five")
        return super().load(request)


class Mortal(Numbers):
    """Kills its worker over every seventh item, the first time only: files remember."""

    def __init__(self, folder: str) -> None:
        super().__init__()
        self.folder = folder

    def load(self, request: int) -> Any:
        marker = os.path.join(self.folder, str(request))
        if request % 7 == 3 and not os.path.exists(marker):
            open(marker, "x").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().load(request)


class Trees(Numbers):
    """What tuples of arrays of one shape are not: each item has its own shape, dtype or container."""

    KINDS = (
        (),
        (np.array(7.5),),
        (np.zeros((0, 3), np.int16), np.zeros((4, 0))),
        (np.arange(6).reshape(2, 3)[:, ::-1], np.arange(6.0).reshape(3, 2).T),
        (np.array(["a", "bcd"]), np.array([b"x"]), np.array(["2020-02-02"], "M8[D]")),
        (np.array([True, False]), np.array([1 + 2j]), np.array([0.5], np.float16)),
        (np.array([(1, 2.0)], [("a", "i4"), ("b", "f8")]), np.array([1, 2], ">i4")),
        {"a": [np.arange(3), "text", None], "b": (1, 2.5, b"raw")},
        np.arange(1000),
        [np.array([None, {"any": "object"}], object)],
    )

    def load(self, request: int) -> Any:
        return self.KINDS[request]


class Plain(Loader):
    """With all defaults: its items are what it loads."""

    def load(self, request: Any) -> Any:
        return request


def first(result: Any) -> int:
    return int(result[0][0])
