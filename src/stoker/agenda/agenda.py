"""The protocol of all agendas, in three parts: for the engine, for the consumer, and for the session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from stoker.engine import Delivery, Units
from stoker.interrupts import Hand
from stoker.plan import Batch, Numbering, Plan
from stoker.plan.mixture import Weights

ENDLESS = "the loader has no length: its Mix has ends='never'. For epochs, pass length=n to Mix"
ROWS_UNCOUNTED = (
    "the number of batches is not known with pack=, as it depends on the lengths of all samples: count the batches as "
    "they come, or train for a number of steps"
)

Take = Callable[[Hand[Delivery]], None]  # puts the next one into a hand that is empty; nothing if told to stop


class Unpacker(Protocol):
    """Turns the results of units into batches, one by one, ahead of the consumer, perhaps in a thread of its own."""

    def take(self, hand: Hand[Delivery]) -> None:
        """Puts the next batch into a hand that is empty; nothing if the engine was told to stop. An interrupt comes
        before that or after it."""


class AgendaUnits(Units, Protocol):
    """The units from where the agenda was last told to ``seek``, and what becomes of them on their way.

    Called by whoever drives the engine; ``forget`` and ``raise_error`` by the consumer's thread.
    """

    def unpacker(self, take: Take, *, whole: bool) -> Unpacker | None:
        """For the results, which ``take`` gives; None where each unit is one batch.

        ``whole``: a delivery may have a whole unit, whose batches the consumer takes one by one.
        """

    def forget(self, delivery: Delivery) -> None:
        """The consumer has it, and nobody will ask for it again."""

    def raise_error(self) -> None:
        """If units have ended with an error: it comes after all that came before it, once."""


class Progress(Protocol):
    """Where the consumer is, which is what a checkpoint holds. Called by the consumer's thread alone.

    For each batch that it takes, ``cursor`` is set to what ``after`` gives.
    """

    cursor: Any  # a value, which nobody changes

    @property
    def epoch(self) -> int:
        """The one that is being taken, or that comes next."""

    @property
    def what(self) -> str:
        """What is left out where it cannot be made: "sample", "item", "part" or "file"."""

    def done(self) -> int | None:
        """Batches of this epoch that the consumer has; None where nobody has counted them."""

    def at_end(self) -> bool:
        """Whether nothing of this epoch is left for the consumer."""

    def after(self, delivery: Delivery) -> Any:
        """The cursor once the consumer has this, too."""

    def leave_out(self, count: int) -> Any:
        """The cursor once so many of the batch that comes next were left out."""

    def left_out(self) -> int:
        """How many were left out in this epoch."""

    def all_of(self, batch: Batch) -> Plan | Numbering:
        """Of what these were left out: its ``share_in`` tells how many there are in an epoch."""

    def go_to(self, epoch: int) -> Any:
        """The cursor at its beginning."""

    def state(self, cursor: Any) -> dict[str, Any]:
        """A cursor, as JSON can hold it."""

    def from_state(self, state: dict[str, Any]) -> Any:
        """And back.

        Raises:
            StateError: The state is damaged, or of another agenda.
        """


class MixedAgenda(Protocol):
    """What an agenda can do besides, whose plan has a mixture for its order."""

    def set_weights(self, weights: Weights, cursor: Any, after: int | None, *, ahead: bool) -> tuple[int, bool]:
        """From some unit on, the mixture has these weights.

        Args:
            weights: Of its sources, in their order.
            cursor: Where the consumer is.
            after: How many units are still to come before. None: those that were handed out.
            ahead: Whether what was handed out after the cursor will still be delivered.

        Returns:
            How many units come before, and whether some that were handed out already have other samples now.
        """


class Agenda(Protocol):
    """What there is to do. Called by a session, in the consumer's thread.

    ``units`` and ``progress`` stay the same objects for as long as it lives.
    """

    is_counted: bool  # False: a worker must be asked for the dataset's length first, which ``set_length`` is told

    @property
    def units(self) -> AgendaUnits:
        """For the engine and the way out."""

    @property
    def progress(self) -> Progress:
        """Where the consumer is."""

    @property
    def plan(self) -> Plan | Numbering:
        """What workers work by."""

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

    def recount(self) -> bool:
        """Where an epoch begins, takes on the dataset's length as it is now. Whether that is another."""

    def look(self) -> Callable[[], None] | None:
        """As an epoch begins: None, or, if what was prefetched of it is out of date, what brings the agenda up to date.

        To be called when nobody drives the engine.
        """

    def close(self) -> None:
        """Ends what it has begun."""
