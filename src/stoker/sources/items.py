"""Items: what a stream's consumer pulls from any iterable, and its workers do their work on, one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from time import perf_counter_ns
from typing import Any, NamedTuple

from stoker.errors import StateError
from stoker.plan import Run
from stoker.sources.indexed import Fetched, SampleError

ENDLESS = 2**62  # the length of a plan whose items nobody has counted

_QUICK_NS = 1_000_000


class Items:
    """Numbers the items as it pulls them, and keeps each until the consumer has its result: a worker may die over it.

    Whoever is interrupted on the way to the consumer needs it again, too.

    Args:
        items: What to pull.
        ahead: Not only when the consumer waits for the very next.
    """

    def __init__(self, items: Iterable[Any], *, ahead: bool) -> None:
        self._items, self._ahead = items, ahead
        self._iterator: Iterator[Any] | None = None
        self._numbered: Iterator[tuple[int, Any]] = iter(())
        self._pulled = 0
        self._kept: dict[int, Any] = {}
        self._taken: frozenset[int] = frozenset()
        self._error: Exception | None = None

    def __getitem__(self, number: int) -> Any:
        return self._kept[number]

    def name(self, number: int) -> str:
        """What the user knows it by."""
        item = self._kept.get(number)
        return item.name if isinstance(item, Seeded) else f"item {number}"

    def forget(self, number: int) -> None:
        """The consumer has its result, and nobody will ask for it again."""
        self._kept.pop(number, None)

    def seek(self, position: int, taken: set[int]) -> None:
        """The next are those from ``position`` on, but for those taken.

        Raises:
            StateError: They were pulled before, and what gave them gives each but once.
        """
        while self._pulled in self._kept:  # Ctrl-C came right after it
            self._pulled += 1
        self._taken = frozenset(taken)
        self._kept = {n: item for n, item in self._kept.items() if n >= position and n not in taken}
        if any(n not in self._kept and n not in taken for n in range(position, self._pulled)):
            self._begin_anew(position)
        while self._pulled < position and self._pull() is not None:
            self.forget(self._pulled - 1)

    def runs(self) -> Iterator[Run | None]:
        """One for each item. None after one that was slow to come: first let it be seen what has happened meanwhile."""
        yield from [Run(0, number, 1) for number in sorted(self._kept)]
        is_slow = False
        while True:
            if is_slow or not self._ahead:
                yield None
            began = perf_counter_ns()
            number = self._pull()
            if number is None:
                return
            if number in self._taken:
                self.forget(number)
            else:
                yield Run(0, number, 1)
            is_slow = perf_counter_ns() - began > _QUICK_NS

    def raise_error(self) -> None:
        """If the items ended with an error: it comes after all results that came before it, once."""
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _pull(self) -> int | None:
        if self._iterator is None:
            iterator = iter(self._items)
            self._numbered = enumerate(iterator)
            self._iterator = iterator
        try:
            self._kept.update(islice(self._numbered, 1))  # in one call: Ctrl-C can't come between having and keeping it
        except Exception as error:
            error.add_note(f"stoker: the items raised it, when item {self._pulled} was asked for")
            self._error = error
            self._numbered = iter(())
        if self._pulled not in self._kept:
            return None
        self._pulled += 1
        return self._pulled - 1

    def _begin_anew(self, position: int) -> None:
        anew = iter(self._items)
        if anew is self._items or anew is self._iterator:
            raise StateError(
                f"item {position} is to come next, but {self._pulled} were pulled already, from an iterator that gives "
                f"each once: make a new stream with new items, and load the state into that"
            )
        self._iterator, self._error, self._pulled, self._kept = None, None, 0, {}


class Seeded(NamedTuple):
    """An item with a name, whose random numbers follow from a seed of its own, and not from its number."""

    seed: int
    item: Any
    name: str


@dataclass(frozen=True)
class ItemSource:
    """What is done with an item, as it travels to workers."""

    dataset: Callable[[Any], Any]

    def open(self) -> Work:
        return Work(self.dataset)


class Work:
    """What a worker does with items."""

    length = ENDLESS

    def __init__(self, work: Callable[[Any], Any], item: Any = None, seed: int | None = None) -> None:
        self._work, self._item, self.seed = work, item, seed

    def on(self, item: Any) -> Work:
        return Work(self._work, item.item, item.seed) if isinstance(item, Seeded) else Work(self._work, item)

    def sample(self, number: int) -> Any:
        try:
            return self._work(self._item)
        except Exception as error:
            error.add_note(f"stoker: work(item) raised it, over item {number}")
            raise

    def fetch(self, numbers: Sequence[int]) -> Fetched:
        (number,) = numbers
        return Fetched([self.sample(number)], numbers, [])

    def fetch_skipping(self, numbers: Sequence[int]) -> Fetched:
        try:
            return self.fetch(numbers)
        except (Exception, SystemExit) as error:
            return Fetched([], [], [SampleError(numbers[0], error)])
