"""Items: what a stream's consumer pulls from any iterable, and its workers do their work on, one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from itertools import islice
from types import GeneratorType
from typing import Any

from stoker.agenda.agenda import Take
from stoker.agenda.planned_progress import PlannedProgress
from stoker.agenda.pulling import Pulling
from stoker.engine import Delivery
from stoker.errors import StateError, add_note
from stoker.interrupts import Hand, is_interrupt
from stoker.plan import Batch, Cursor, Numbering, Run


class ItemUnits:
    """Numbers the items as it pulls them, and keeps each until the consumer has its result: a worker may die over it.

    Whoever is interrupted on the way to the consumer needs it again, too.

    Args:
        items: What to pull.
        ahead: Pull not only when the consumer waits for the very next.
        worker_of: Says which worker alone may do an item; None, also what it returns: any may.
    """

    length, longest_run = 0, 1

    def __init__(self, items: Iterable[Any], *, ahead: bool, worker_of: Callable[[Any], int | None] | None) -> None:
        self._worker_of = worker_of
        self._ahead = ahead
        self.begin(items)

    def begin(self, items: Iterable[Any]) -> None:
        """From now on these items, from the first one on. Nothing is left of those that there were."""
        self.items = items
        self._iterator: Iterator[Any] | None = None
        self._numbered: Iterator[tuple[int, Any]] = iter(())
        self._pulled = 0
        self._kept: dict[int, Any] = {}
        self._next = 0  # the number of the one that is offered next,
        self._taken: frozenset[int] = frozenset()  # which may not be one of these
        self._pulling = Pulling(ahead=self._ahead)

    @property
    def interrupt(self) -> BaseException | None:
        return self._pulling.interrupt

    @interrupt.setter
    def interrupt(self, error: BaseException | None) -> None:
        self._pulling.interrupt = error

    def seek(self, cursor: Cursor) -> None:
        """See ``Agenda.seek``."""
        position, taken = cursor.position, cursor.taken
        while self._pulled in self._kept:  # Ctrl-C came right after it
            self._pulled += 1
        self._kept = {n: item for n, item in self._kept.items() if n >= position and n not in taken}
        if any(n not in self._kept and n not in taken for n in range(position, self._pulled)):
            self._begin_anew(position)
        while self._pulled < position and self._pull():
            self._kept.pop(self._pulled - 1, None)
        self._next, self._taken = position, frozenset(taken)

    def unpacker(self, take: Take, *, whole: bool) -> None:
        return None

    def runs(self, size: Callable[[], int]) -> Iterator[Run | None]:
        """First those that were pulled already, at once."""
        yield from [self._run(number) for number in sorted(self._kept)]
        self._next = max(self._next, self._pulled)
        yield from self._pulling.runs(self._offer)

    def payload(self, run: Run) -> Any:
        return self._kept[run.position]

    def batch(self, epoch: int, position: int) -> Batch:
        return Batch(epoch, position, position + 1, position)

    def indices(self, run: Run) -> Sequence[int]:
        return [run.position]

    def name(self, run: Run) -> str:
        return f"item {run.position}"

    def forget(self, delivery: Delivery) -> None:
        self._kept.pop(delivery.batch.position, None)

    def raise_error(self) -> None:
        self._pulling.raise_error()

    def _offer(self, hand: Hand[Run]) -> None:
        while hand.held is None and (self._next < self._pulled or self._pull()):  # it may have come just before
            if self._next in self._taken:
                self._kept.pop(self._next, None)
                self._next += 1
            else:
                run = self._run(self._next)
                hand.held, self._next = run, self._next + 1  # at once

    def _run(self, number: int) -> Run:
        if self._worker_of is None:
            return Run(0, number, 1)
        return Run(0, number, 1, worker=self._worker_of(self._kept[number]), stays=True)

    def _pull(self) -> bool:
        if self._iterator is None:
            iterator = iter(self.items)
            self._numbered = enumerate(iterator)
            self._iterator = iterator
        try:
            self._kept.update(islice(self._numbered, 1))  # in one call: Ctrl-C can't come between having and keeping it
        except Exception as error:
            if is_interrupt(error) and not _has_ended(self._iterator):
                raise
            add_note(error, f"stoker: the items raised it, when item {self._pulled} was asked for")
            self._pulling.error = error
            self._numbered = iter(())
        except BaseException as error:
            if _has_ended(self._iterator):  # whoever goes on shall not take that for the end of the items
                self._pulling.error = RuntimeError(
                    f"{type(error).__name__} has ended the generator that gives the items, at item {self._pulled}: "
                    f"make a new stream with new items, and load this one's state into that"
                )
            raise
        if self._pulled not in self._kept:
            return False
        self._pulled += 1
        return True

    def _begin_anew(self, position: int) -> None:
        anew = iter(self.items)
        if anew is self.items or anew is self._iterator:
            raise StateError(
                f"item {position} is to come next, but {self._pulled} were pulled already, from an iterator that gives "
                f"each once: make a new stream with new items, and load the state into that"
            )
        self._iterator, self._pulling.error, self._pulled, self._kept = None, None, 0, {}


class ItemAgenda:
    """The items of an iterable, numbered from 0 on. There is but one epoch of them.

    Args:
        items: What to pull.
        seed: Of all random numbers that are drawn over them.
        ahead: Pull not only when the consumer waits for the very next.
        worker_of: Says which worker alone may do an item; None, also what it returns: any may.
    """

    is_counted = True
    shard = (0, 1)

    def __init__(
        self, items: Iterable[Any], *, seed: int, ahead: bool, worker_of: Callable[[Any], int | None] | None = None
    ) -> None:
        self.plan = Numbering(seed)
        self.units = ItemUnits(items, ahead=ahead, worker_of=worker_of)
        self.progress = PlannedProgress(self.plan, "item")

    def set_shard(self, shard: tuple[int, int]) -> None:
        raise NotImplementedError("a stream has no shards")

    def set_length(self, length: int) -> None:
        raise NotImplementedError("nobody knows how many items there are")

    @property
    def has_length(self) -> bool:
        return isinstance(self.units.items, Sized)

    def __len__(self) -> int:
        if not isinstance(self.units.items, Sized):
            raise TypeError("the items of this stream have no length, so it has none either")
        return len(self.units.items)

    def seek(self) -> None:
        self.units.seek(self.progress.cursor)

    def recount(self) -> bool:
        return False

    def look(self) -> None:
        return None

    def close(self) -> None:
        pass


def _has_ended(iterator: Iterator[Any] | None) -> bool:
    """A generator that an exception came out of gives nothing any more; other iterators may."""
    return isinstance(iterator, GeneratorType) and iterator.gi_frame is None
