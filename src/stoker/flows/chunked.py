"""Batches of chunk files: workers read groups of files, and the consumer hands out what they made, one by one.

    files ── list ──> groups ── a worker reads, shuffles and cuts ──> batches ──────────────────> you
                                                                 └──> loose samples ── joined ───┘

A group's last samples, too few for a batch, wait for the next ones; the consumer collates such batches itself.
Where it is, is told by the groups it is done with, the batches it has of the one it is at, and the samples that wait.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from stoker.bridges import landed
from stoker.collate import collate as default_collate
from stoker.collate.columns import made
from stoker.collate.tensors import copied
from stoker.collate.tree import map_leaves
from stoker.engine import Delivery
from stoker.flows.chunked_state import Where, from_state, to_state
from stoker.flows.epochs import Epochs
from stoker.observe import Failures, Stats
from stoker.plan import Batch, Cursor, Plan, derive
from stoker.plan.permutation import Positions
from stoker.session import Session, Settings
from stoker.sources import ENDLESS, Items, ItemSource, Seeded
from stoker.sources.chunks import Chunks, CountSamples, ReadGroup, Unread
from stoker.sources.files.opening import shown
from stoker.streams import stream
from stoker.workers import Inline, Skipped
from stoker.workers.randomness import BorrowedGenerators
from stoker.workers.worker import Job

_COUNTED_TOGETHER = 64  # files whose samples a worker counts in one go


class _Waiting(NamedTuple):
    """A sample that waits for others to make a batch with: the nth loose one of the group at ``place``."""

    place: int
    nth: int
    sample: Any


class ChunkedFlow:
    """Batches of chunk files.

    Args:
        chunks: The files.
        plan: Batch size, shuffle, seed, ``drop_last`` and shard; its length plays no part.
        collate: The user's own.
        settings: How to work.
        failures: Takes note of files that are left out.
    """

    def __init__(
        self,
        chunks: Chunks,
        plan: Plan,
        collate: Callable[[list[Any]], Any] | None,
        settings: Settings,
        failures: Failures,
    ) -> None:
        self._chunks, self._plan, self._collate, self._failures = chunks, plan, collate, failures
        self._bridge = settings.bridge  # a group has many batches, and each goes through it by itself
        self._settings = dataclasses.replace(settings, bridge=None, on_device=0)
        leave_out = settings.policy.leaves_out
        work = ReadGroup(chunks.read, plan.batch_size, collate, chunks.across_chunks, plan.drop_last, leave_out)
        endless = Plan(ENDLESS, None, seed=plan.seed)
        self.session = Session(
            "loader",
            endless,
            length_known=True,
            job=Job(ItemSource(work), endless, None, skip_errors=False),
            settings=self._settings,
            failures=self,
            items=Items((), ahead=True),
        )
        self._epochs = Epochs(chunks, plan, self._count)
        self._batches = self._samples = 0
        self._begun: int | None = None  # the epoch that was begun last
        self._interrupted = False
        self._begin(0)

    def __len__(self) -> int:
        return self._epochs.batches(self.epoch)

    def take(self) -> Any:
        if self._interrupted:
            self._go_to(self._where())
        try:
            batch = self._next()
        except Exception:
            raise
        except BaseException:  # Ctrl-C: a group may have got lost between the engine and here, and is read again
            self._interrupted = True
            raise
        self._batches += 1
        return batch if self._bridge is None else landed(self._bridge(batch))

    def go_to(self, epoch: int) -> None:
        self._begin(epoch)

    def state(self) -> dict[str, Any]:
        where = self._where()
        if where.place and self._is_over() and (not where.waiting or self._plan.drop_last):
            where = Where(self.epoch + 1)
        return to_state(where, self._chunks, self._plan, self._files(where))

    def load(self, state: dict[str, Any]) -> None:
        self._go_to(from_state(state, self._chunks, self._plan, self._files))

    def close(self) -> None:
        for held in (self._ready, self._early, self._loose, self._waiting):
            held.clear()
        self.session.close()

    def stats(self) -> Stats:
        return dataclasses.replace(self.session.stats(), batches=self._batches, samples=self._samples)

    def note(self, skipped: tuple[Skipped, ...], batch: Batch, plan: Plan, before: int) -> None:
        """A session tells this of items that it has left out, as their workers died: all files of a group."""
        epoch, place = self._sent[batch.round]
        found = self._epochs[epoch]
        files = [(file, shown(found.listing[file])) for file in found.groups.files(found.parts[place].group)]
        self._note(epoch, [Unread(n, f"{name}: {one.error}", one.traceback) for one in skipped for n, name in files])
        self._pass_over(batch.round)

    # Where it is

    def _where(self) -> Where:
        waiting = self._missing or [(one.place, one.nth) for one in self._waiting]
        partly = self._skip if self._at is None else self._skip | {self._at: self._handed}
        return Where(self.epoch, self._place, sorted(self._taken), sorted(partly.items()), waiting, self._left_out)

    def _go_to(self, where: Where) -> None:
        self._begin(where.epoch, where.place, set(where.taken))
        self._missing += where.waiting
        self._skip.update(where.partly)
        self._left_out = where.left_out

    def _begin(self, epoch: int, place: int = 0, taken: set[int] | None = None) -> None:
        """Goes to a place of an epoch, having taken only these after it."""
        self.epoch, self._place = epoch, place
        self._taken = taken or set()  # places after it that are done with
        self._at: int | None = None  # the place whose batches are being handed out,
        self._handed = 0  # and how many of them were
        self._ready: deque[tuple[Any, int]] = deque()  # the others, and how many samples they have
        self._loose: list[Any] = []  # samples of it before its first batch, and after its last one,
        self._rest = 0  # which begin here
        self._waiting: list[_Waiting] = []
        self._missing: list[tuple[int, int]] = []  # what should be waiting and is still to be read: place and nth
        self._skip: dict[int, int] = {}  # batches that were handed out before: place -> how many
        self._early: list[Delivery] = []  # of the next epoch
        self._later: set[int] = set()  # places of the next epoch that were left out already
        self._left_out = 0  # files, in this epoch
        self._failed: Callable[[], None] | None = None  # what to pass over if the consumer goes on after an error
        self._interrupted = False
        self._follow(_Readings(self))

    def _pass_over(self, number: int) -> None:
        """Nothing comes of that item."""
        epoch, place = self._sent.pop(number)
        if epoch == self.epoch:
            self._place, self._taken = self._after(place)
        else:
            self._later.add(place)

    def _after(self, place: int) -> tuple[int, set[int]]:
        """Where it is once that place is done with: the place before which all are, and those taken after it."""
        taken, first = {*self._taken, place}, self._place
        while first in taken:
            taken.remove(first)
            first += 1
        return first, taken

    def _is_over(self) -> bool:
        return self._place >= len(self._epochs[self.epoch].parts)

    def _end_epoch(self) -> None:
        """What was prefetched of the next one stays."""
        self.epoch += 1
        self._place, self._waiting, self._left_out = 0, [], 0
        self._taken, self._later = self._later, set()
        if not self._settings.in_order:
            self._follow(_Readings(self))

    def _files(self, where: Where) -> str:
        return str(self._epochs[where.epoch].listing.fingerprint()) if where.is_within else ""

    # What comes next

    def _next(self) -> Any:
        if self._failed is not None:
            self._failed()
            self._failed = None
        if self._begun != self.epoch:
            self._look_at_files()
        if self._missing:
            self._read_missing()
        size = self._plan.batch_size or 1
        while True:
            if len(self._waiting) >= size:
                return self._joined(size)
            if self._ready:
                return self._hand_out()
            if not self._is_over():
                self._receive()
            elif self._waiting and not self._plan.drop_last:
                return self._joined(len(self._waiting))
            else:
                self._end_epoch()
                raise StopIteration

    def _look_at_files(self) -> None:
        """As an epoch begins. What was prefetched of it is thrown away if the files are others by now."""
        is_at_begin = not (self._place or self._taken or self._missing or self._skip)
        if self._begun is not None and is_at_begin and self._epochs.have_changed(self.epoch):
            self._begin(self.epoch)
        self._begun = self.epoch

    def _receive(self) -> None:
        """Takes the next group that workers have read."""
        delivery = self._early.pop() if self._early else self._delivered()
        if delivery is None:
            return  # all that was left of the epoch could not be read
        number, group = delivery.batch.round, delivery.data
        epoch, place = self._sent[number]
        if epoch != self.epoch:
            self._early.append(delivery)
            return
        was_here = place in self._skip
        if group.unread and not was_here:
            self._passing_over(number, lambda: self._note(epoch, group.unread))
        handed = self._skip.pop(place, 0)
        ready = deque(zip(group.batches()[handed:], group.sizes[handed:].tolist(), strict=True))
        loose, first = [*group.head, *group.rest], len(group.head)
        waiting = self._waiting if was_here else [*self._waiting, *_copies(place, loose[:first], 0)]
        del self._sent[number]
        # At once: between such lines, nothing can come in between.
        self._at, self._handed, self._ready, self._loose = place, handed, ready, loose
        self._rest, self._waiting = first, waiting
        if not ready:
            self._finish_group()

    def _delivered(self) -> Delivery | None:
        try:
            delivery = self.session.take()
        except Exception:
            if self.session.failed is not None:
                number = self.session.failed.round
                self._failed = lambda: self._pass_over(number)
            raise
        if delivery is None:
            self._items.raise_error()
        return delivery

    def _hand_out(self) -> Any:
        batch, size = self._ready.popleft()
        if self._ready:
            self._handed += 1
        else:
            self._finish_group()
        self._samples += size
        return batch

    def _finish_group(self) -> None:
        assert self._at is not None
        waiting = [*self._waiting, *_copies(self._at, self._loose[self._rest :], self._rest)]
        place, taken = self._after(self._at)
        nothing: list[Any] = []
        self._waiting, self._place, self._taken = waiting, place, taken
        self._at, self._handed, self._loose = None, 0, nothing

    def _joined(self, count: int) -> Any:
        """A batch of samples that different groups have left over."""
        joined, rest = self._waiting[:count], self._waiting[count:]
        try:
            batch = self._collated(joined)
        except Exception:
            self._failed = lambda: setattr(self, "_waiting", rest)
            raise
        self._samples += count
        self._waiting = rest
        return batch

    def _collated(self, joined: list[_Waiting]) -> Any:
        samples = [one.sample for one in joined]
        epoch, generators = self._epochs[self.epoch], BorrowedGenerators()
        with generators.lent():
            generators.seed(derive(epoch.groups.seed(epoch.parts[joined[0].place].group), joined[0].nth))
            return made(default_collate(samples)) if self._collate is None else self._collate(samples)

    def _passing_over(self, number: int, work: Callable[[], None]) -> None:
        """Does that; if it raises, and the consumer goes on, nothing comes of the item."""
        try:
            work()
        except Exception:
            self._failed = lambda: self._pass_over(number)
            raise

    def _read_missing(self) -> None:
        """Reads again, after a resume, the groups of which samples were waiting."""
        places = list(dict.fromkeys(place for place, _ in self._missing))
        self._follow(_Readings(self, places))
        found: dict[tuple[int, int], _Waiting] = {}
        while (delivery := self._delivered()) is not None:
            place, loose = self._sent[delivery.batch.round][1], [*delivery.data.head, *delivery.data.rest]
            found.update({(place, one.nth): one for one in _copies(place, loose, 0)})
        waiting = [found[key] for key in self._missing if key in found]  # some may not be readable any more
        self._follow(_Readings(self))
        nothing: list[Any] = []
        self._waiting, self._missing = waiting, nothing

    # The workers' side

    def _follow(self, readings: _Readings) -> None:
        self._sent: dict[int, tuple[int, int]] = {}  # items under way: their number -> epoch and place
        self._items = Items(readings, ahead=not isinstance(self._settings.workers, Inline))
        self.session.jump(Cursor(), self._items)

    def places(self) -> Iterator[tuple[int, int]]:
        """What to read: epoch and place. In order, also of the epochs to come, so that those are prefetched."""
        epoch, taken = self.epoch, frozenset(self._taken)
        here = range(self._place, len(self._epochs[epoch].parts))
        yield from ((epoch, place) for place in here if place not in taken)
        while self._settings.in_order and self._epochs[epoch].parts:
            epoch += 1
            yield from ((epoch, place) for place in range(len(self._epochs[epoch].parts)))

    def item(self, number: int, epoch: int, place: int) -> Seeded:
        self._sent[number] = epoch, place
        return self._epochs[epoch].item(place)

    def _note(self, epoch: int, unread: list[Unread]) -> None:
        """Raises if these are too many."""
        files = Plan(len(self._epochs[epoch].listing), None)
        skipped = tuple(Skipped(*one) for one in unread)
        self._failures.note(skipped, Batch(epoch, 0, 0, 0), files, self._left_out)
        self._left_out += len(skipped)

    def _count(self, paths: Iterator[str]) -> Positions:
        """The number of samples of each file, found out by workers."""
        work = CountSamples(self._chunks.read, self._settings.policy.leaves_out)
        together = iter(lambda: list(itertools.islice(paths, _COUNTED_TOGETHER)), [])
        with stream(work, together, workers=self._settings.workers) as counts:
            return np.concatenate([np.zeros(0, np.int64), *[part.copy() for part in counts]])


def _copies(place: int, samples: list[Any], first: int) -> list[_Waiting]:
    """Loose samples, the ``first`` and those after it, to wait; as copies, as the memory of their group is wanted."""
    return [_Waiting(place, nth, map_leaves(copied, one)) for nth, one in enumerate(samples, first)]


class _Readings:
    """Items for workers, of a flow from where it is on or of these places of its epoch; pickles, unlike a generator."""

    def __init__(self, flow: ChunkedFlow, places: list[int] | None = None) -> None:
        self._flow, self._places = flow, places

    def __iter__(self) -> Iterator[Seeded]:
        flow = self._flow
        places = flow.places() if self._places is None else ((flow.epoch, place) for place in self._places)
        for number, (epoch, place) in enumerate(places):
            yield flow.item(number, epoch, place)
