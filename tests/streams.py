"""Reading what loaders deliver; comparing it is the kit's business."""

from __future__ import annotations

from typing import Any

from stoker import Inline, Loader
from stoker.testing import assert_same
from stoker.testing.streams import kept

__all__ = ["Cases", "assert_same", "epochs", "kept"]


def epochs(loader: Any, count: int) -> list[list[Any]]:
    return [[kept(batch) for batch in loader] for _ in range(count)]


class Cases:
    """Datasets and options by name, and what a loader without workers makes of each, which is found once."""

    def __init__(self, cases: dict[str, tuple[Any, dict[str, Any]]]) -> None:
        self._cases = cases
        self._expected: dict[str, tuple[int, list[list[Any]]]] = {}

    def expected(self, case: str) -> tuple[int, list[list[Any]]]:
        """The length, and three epochs."""
        if case not in self._expected:
            dataset, options = self._cases[case]
            with Loader(dataset, workers=Inline(), **options) as loader:
                self._expected[case] = len(loader), epochs(loader, 3)
        return self._expected[case]

    def check(self, case: str, workers: Any) -> None:
        """Whether these workers make the same of it."""
        dataset, options = self._cases[case]
        length, stream = self.expected(case)
        with Loader(dataset, workers=workers, **options) as loader:
            assert len(loader) == length
            assert_same(epochs(loader, 3), stream)
