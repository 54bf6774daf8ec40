"""Opening: the batches of groups that workers have read, one by one, and those of loose samples between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from stoker.agenda.agenda import Take
from stoker.agenda.chunks.loose import Waiting, batch_of, copies, not_there
from stoker.engine import Delivery
from stoker.interrupts import Hand, is_interrupt
from stoker.plan import Batch, ChunkCursor, Plan, derive
from stoker.sources.chunks import Unread
from stoker.sources.files.forms import Form, agreed
from stoker.sources.group_table import Batches
from stoker.workers import Skipped
from stoker.workers.randomness import BorrowedGenerators


class Places(Protocol):
    """The units of each epoch, each at a place from 0 on."""

    def count(self, epoch: int) -> int:
        """How many there are."""

    def name(self, epoch: int, place: int) -> str:
        """What the unit there is called in messages."""

    def seed(self, epoch: int, place: int) -> int:
        """For what is random in it."""

    def batch(self, epoch: int, place: int) -> Batch:
        """Its key."""

    def lost(self, epoch: int, place: int, skipped: Sequence[Skipped]) -> tuple[Skipped, ...]:
        """What is left out if nothing comes of it; ``skipped``: as the engine says."""


class Opened(Protocol):
    """What a worker has made of a unit."""

    @property
    def sizes(self) -> Any:
        """Of its batches, as an array."""

    @property
    def unread(self) -> list[Unread]:
        """Parts that it has left out."""

    @property
    def form(self) -> Form:
        """Of the columns of its batches, where all units must agree on one."""

    def batches(self) -> Batches:
        """Each is cut when it is asked for."""

    def record_batches(self, to_arrow: Callable[[Any], Any]) -> Batches:
        """The same for Arrow."""

    def loose(self) -> tuple[list[Any], int]:
        """The loose samples, and how many of them are before the first batch."""

    def in_order_of(self, form: Form) -> Opened:
        """With the columns in that order."""


class Forms:
    """The form of the columns of all batches: what the first files have, others must have."""

    def __init__(self) -> None:
        self._form: Form = {}
        self._of = ""  # those files

    def agreed(self, group: Opened, names: Callable[[], str]) -> Opened:
        """With its columns in the order of those before. Raises ``ChunkError`` if they are others."""
        if group.form and group.form != self._form:
            of = names()
            self._form, self._of = agreed(self._form, self._of, group.form, of), self._of or of
        return group.in_order_of(self._form)


@dataclass(frozen=True, slots=True)
class OpenGroup:
    """A group whose batches are being handed out.

    Attributes:
        place: Of the epoch.
        sizes: Of its batches.
        make: Cuts or gives the nth of them.
        rest: Its loose samples after the last one.
        read: The delivery that it came with.
    """

    place: int
    sizes: list[int]
    make: Callable[[int], Any]
    rest: list[Waiting]
    read: Delivery

    def after(self, nth: int, before: ChunkCursor) -> ChunkCursor:
        """The cursor once the nth was taken; ``before``: once the group had come."""
        if nth + 1 < len(self.sizes):
            return before.hand_out(self.place, nth + 1)
        return before.finish(self.place, [one.nth for one in self.rest])


@dataclass(frozen=True, slots=True)
class _Whole:
    """A group that the consumer takes the batches of by itself."""

    group: OpenGroup
    before: ChunkCursor
    sizes: list[int]
    make: Callable[[int], Any]

    def after(self, nth: int) -> ChunkCursor:
        return self.group.after(nth, self.before)


class Opening:
    """Goes on from a cursor, ahead of the consumer. Each step is noted at once, so that an interrupt loses nothing.

    Args:
        take: Gives the groups as they come: in the order of their places, or, out of order, epoch after epoch.
        cursor: Where the consumer is.
        places: All there are.
        forms: Of the columns so far.
        plan: Batch size and ``drop_last``.
        collate: The user's own, for loose samples.
        to_arrow: Makes record batches of columns.
        whole: Give all batches of a group in one delivery.
    """

    def __init__(
        self,
        take: Take,
        cursor: ChunkCursor,
        places: Places,
        forms: Forms,
        plan: Plan,
        collate: Callable[[list[Any]], Any] | None,
        to_arrow: Callable[[Any], Any] | None,
        *,
        whole: bool,
    ) -> None:
        self._take, self._places, self._forms = take, places, forms
        self._size, self._drop_last, self._collate = plan.batch_size or 1, plan.drop_last, collate
        self._to_arrow, self._is_whole = to_arrow, whole
        self._came: Hand[Delivery] = Hand()  # what was taken and not yet opened
        self._cursor = cursor  # after all that was given
        self._waiting: list[Waiting] = []  # the samples that it says are waiting,
        self._missing = {place for place, _ in cursor.waiting}  # but for those of groups that are read once more,
        self._found: dict[int, tuple[list[Waiting], bool]] = {}  # of which these have come; is something left out?
        self._group: OpenGroup | None = None
        self._nth = 0  # the batch of it that comes next

    def take(self, hand: Hand[Delivery]) -> None:
        while hand.held is None and self._step(hand):
            pass

    def _step(self, hand: Hand[Delivery]) -> bool:
        """Comes nearer to the next batch, or gives it. False if the engine was told to stop."""
        if self._missing:
            return self._receive(hand) if len(self._found) < len(self._missing) else self._restore(hand)
        if len(self._waiting) >= self._size:
            return self._join(self._size, hand)
        if self._group is not None:
            return self._hand_out(self._group, hand)
        places = self._places.count(self._cursor.epoch)
        if not places or not self._cursor.is_over(places):
            return self._receive(hand)
        if self._waiting and not self._drop_last:
            return self._join(len(self._waiting), hand)
        cursor, nothing = ChunkCursor(self._cursor.epoch + 1), list[Waiting]()
        self._cursor, self._waiting = cursor, nothing
        return True

    def _join(self, count: int, hand: Hand[Delivery]) -> bool:
        """A batch of samples that different groups have left over."""
        joined, rest = self._waiting[:count], self._waiting[count:]
        epoch, after = self._cursor.epoch, self._cursor.join(count)
        make, is_own = partial(self._collated, joined, epoch), self._collate is not None
        given = Delivery(Batch(epoch, 0, 0, 0), samples=count, make=make, is_own=is_own, after=after)
        hand.held, self._waiting, self._cursor = given, rest, after
        return True

    def _collated(self, joined: list[Waiting], epoch: int) -> Any:
        """The user's own collate may draw random numbers: those of these samples, whoever else draws some."""
        samples, to_arrow = [one.sample for one in joined], self._to_arrow
        if self._collate is None:
            batch = batch_of(samples, None, as_columns=to_arrow is not None)
        else:
            generators = BorrowedGenerators()
            with generators.lent():
                generators.seed(derive(self._places.seed(epoch, joined[0].place), joined[0].nth))
                batch = batch_of(samples, self._collate, as_columns=to_arrow is not None)
        return batch if to_arrow is None else to_arrow(batch)

    def _hand_out(self, group: OpenGroup, hand: Hand[Delivery]) -> bool:
        nth, read, before = self._nth, group.read, self._cursor
        batch, times = read.batch, (read.worker, read.waited)
        make, size = partial(group.make, nth), group.sizes[nth]
        given = Delivery(batch, None, read.made, None, (), *times, size, make=make)
        last = len(group.sizes) - 1
        after = group.after(last if self._is_whole else nth, before)
        if self._is_whole:
            given.unit, given.nth = _Whole(group, before, group.sizes, group.make), nth
        else:
            given.after = after
        if self._is_whole or nth == last:
            waiting = [*self._waiting, *group.rest]
            hand.held, self._cursor, self._waiting, self._group = given, after, waiting, None
        else:
            once = Delivery(batch)  # what the worker has told is told with the first batch
            rest = OpenGroup(group.place, group.sizes, group.make, group.rest, once)
            hand.held, self._cursor, self._group, self._nth = given, after, rest, nth + 1
        return True

    # Groups as they come

    def _receive(self, hand: Hand[Delivery]) -> bool:
        came = self._came
        if came.held is None:
            self._take(came)
            if came.held is None:
                return False
        delivery = came.held
        place = delivery.batch.position
        if delivery.ended:
            hand.held, came.held = delivery, None
        elif delivery.batch.epoch < 0:  # made once more
            self._find(delivery, place, hand)
        elif delivery.error is not None:
            self._pass_over(delivery, delivery.error, hand)
        elif not delivery.samples:
            self._leave_out(delivery, self._cursor.pass_over, hand)
        else:
            self._open(delivery, place, hand)
        return True

    def _open(self, delivery: Delivery, place: int, hand: Hand[Delivery]) -> None:
        cursor = self._cursor
        handed = cursor.handed(place)
        try:
            group = self._of_one_form(delivery.data, cursor.epoch, place)
            batches = group.batches() if self._to_arrow is None else group.record_batches(self._to_arrow)
            if handed and handed >= len(batches) and not _left_out(delivery, group):
                raise not_there(f"batch {handed}", place)
            loose, first = group.loose()
            head = copies(place, loose[:first], 0) if handed is None else []
            rest = copies(place, loose[first:], first)
        except Exception as error:
            if is_interrupt(error):
                raise
            self._pass_over(delivery, error, hand)
            return
        unread = _left_out(delivery, group) if handed is None else []
        begun, waiting, nth = cursor.begin(place, first, len(unread)), [*self._waiting, *head], handed or 0
        opened = OpenGroup(place, group.sizes.tolist(), batches.make, rest, delivery)
        if nth < len(batches) and not unread:
            self._came.held, self._cursor, self._waiting, self._group, self._nth = None, begun, waiting, opened, nth
            return
        is_done = nth >= len(batches)
        after = begun.finish(place, [one.nth for one in rest]) if is_done else begun
        given = _told(delivery, tuple(unread))
        given.after, given.otherwise = after, cursor.pass_over(place) if unread else None
        waiting = [*waiting, *rest] if is_done else waiting
        left = None if is_done else OpenGroup(place, opened.sizes, opened.make, rest, Delivery(delivery.batch))
        hand.held, self._came.held, self._cursor = given, None, after
        self._waiting, self._group, self._nth = waiting, left, nth

    def _of_one_form(self, group: Opened, epoch: int, place: int) -> Opened:
        return self._forms.agreed(group, lambda: self._places.name(epoch, place))

    def _pass_over(self, delivery: Delivery, error: BaseException, hand: Hand[Delivery]) -> None:
        """An error comes in its place, and nothing of it if the consumer goes on."""
        after = self._cursor.pass_over(delivery.batch.position)
        given = Delivery(delivery.batch, error=error, after=after)
        hand.held, self._came.held, self._cursor = given, None, after

    def _leave_out(self, delivery: Delivery, passed: Callable[[int, int], ChunkCursor], hand: Hand[Delivery]) -> None:
        """Nothing comes of it, as its workers died over it: all of it is left out."""
        place, epoch = delivery.batch.position, self._cursor.epoch
        told = self._places.lost(epoch, place, delivery.skipped)
        given = _told(delivery, told)
        given.batch = self._places.batch(epoch, place)
        given.after, given.otherwise = passed(place, len(told)), passed(place, 0)
        hand.held, self._came.held, self._cursor = given, None, given.after

    # Groups that are read once more

    def _find(self, delivery: Delivery, place: int, hand: Hand[Delivery]) -> None:
        """Keeps the loose samples of a group; what cannot be read any more is lost."""
        if delivery.error is None and delivery.samples:
            group = self._of_one_form(delivery.data, self._cursor.epoch, place)
            found = copies(place, group.loose()[0], 0), bool(_left_out(delivery, group))
            self._found[place], self._came.held = found, None
            return
        lost = self._cursor.without_waiting(one for one in self._cursor.waiting if one[0] == place)
        if delivery.error is None:
            self._found[place] = [], True
            self._leave_out(delivery, lambda _, count: lost._replace(left_out=lost.left_out + count), hand)
        else:
            given = Delivery(Batch(lost.epoch, 0, 0, 0), error=delivery.error, after=lost)
            hand.held, self._came.held, self._cursor, self._found[place] = given, None, lost, ([], True)

    def _restore(self, hand: Hand[Delivery]) -> bool:
        """All have come: those that waited wait again."""
        found = {(one.place, one.nth): one for loose, _ in self._found.values() for one in loose}
        waiting = [found[key] for key in self._cursor.waiting if key in found]
        lost = [key for key in self._cursor.waiting if key not in found]
        after, nothing = self._cursor.without_waiting(lost), set[int]()
        given = None
        for place, nth in lost:
            if not self._found[place][1]:
                given = Delivery(Batch(after.epoch, 0, 0, 0), error=not_there(f"sample {nth}", place), after=after)
        hand.held, self._waiting, self._cursor, self._missing = given, waiting, after, nothing
        return True


def _left_out(delivery: Delivery, group: Opened) -> list[Skipped]:
    """What a unit lacks: samples that could not be fetched, parts that could not be read."""
    return [*delivery.skipped, *(Skipped(*one) for one in group.unread)]


def _told(delivery: Delivery, skipped: tuple[Skipped, ...]) -> Delivery:
    """What a worker has told of a group, without a batch."""
    return Delivery(delivery.batch, None, delivery.made, None, skipped, delivery.worker, delivery.waited)
