"""The protocol of all agendas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from stoker.engine import Delivery, Units
from stoker.interrupts import Hand
from stoker.plan import Batch, Numbering, Plan

Take = Callable[[Hand[Delivery]], None]  # puts the next one into a hand that is empty; nothing if told to stop


class Unpacker(Protocol):
    """Turns the results of units into batches, one by one, ahead of the consumer, perhaps in a thread of its own."""

    def take(self, hand: Hand[Delivery]) -> None:
        """Puts the next batch into a hand that is empty; nothing if the engine was told to stop. An interrupt comes
        before that or after it."""


class Agenda(Units, Protocol):
    """What there is to do, and where the consumer is in it, which is what a checkpoint holds.

    Who calls what: a session, in the consumer's thread, all that is here; whoever drives the engine what is in
    ``Units``, and the unpacker. ``seek`` comes first, then the engine asks for ``runs``; the consumer takes batches,
    and for each of them the session sets ``cursor`` to what ``after`` gives.
    """

    cursor: Any  # where the consumer is: a value, which nobody changes
    is_counted: bool  # False: a worker must be asked for the dataset's length first, which ``set_length`` is told

    @property
    def what(self) -> str:
        """What is left out where it cannot be made: "sample", "item", "part" or "file"."""

    @property
    def plan(self) -> Plan | Numbering:
        """What workers work by."""

    @property
    def epoch(self) -> int:
        """The one that is being taken, or that comes next."""

    @property
    def shard(self) -> tuple[int, int]:
        """Whose batches these are."""

    def set_shard(self, shard: tuple[int, int]) -> None:
        """Goes on as that shard, from where the consumer is. Only before any worker was started.

        Raises:
            StateError: It is where only the shard that it was can go on.
        """

    def set_length(self, length: int) -> None:
        """The dataset has that length."""

    def __len__(self) -> int:
        """Batches in an epoch."""

    def seek(self) -> None:
        """The next units are those after the cursor. Code of the user's may run here.

        Raises:
            StateError: They cannot be had again.
        """

    def unpacker(self, take: Take, *, whole: bool) -> Unpacker | None:
        """For the units from the cursor on, which ``take`` gives; None where each is one batch.

        ``whole``: a delivery may have a whole unit, whose batches the consumer takes one by one.
        """

    def at_end(self) -> bool:
        """Whether nothing of this epoch is left for the consumer."""

    def after(self, delivery: Delivery) -> Any:
        """The cursor once the consumer has this, too."""

    def leave_out(self, count: int) -> Any:
        """The cursor once so many of the batch that comes next were left out."""

    def left_out(self) -> int:
        """How many were left out in this epoch."""

    def all_of(self, batch: Batch) -> Plan | Numbering:
        """Of what these were left out: its ``share`` tells how many there are."""

    def forget(self, delivery: Delivery) -> None:
        """The consumer has it, and nobody will ask for it again."""

    def raise_error(self) -> None:
        """If units have ended with an error: it comes after all that came before it, once."""

    def go_to(self, epoch: int) -> Any:
        """The cursor at its beginning."""

    def recount(self) -> bool:
        """Where an epoch begins, takes on the dataset's length as it is now. Whether that is another."""

    def look(self) -> Callable[[], None] | None:
        """As an epoch begins: None, or, if what was prefetched of it is out of date, what brings the agenda up to date.

        To be called when nobody drives the engine.
        """

    def state(self, cursor: Any) -> dict[str, Any]:
        """A cursor, as JSON can hold it."""

    def from_state(self, state: dict[str, Any]) -> Any:
        """And back.

        Raises:
            StateError: The state is damaged, or of another agenda.
        """

    def close(self) -> None:
        """Ends what it has begun."""
