"""A session: one consumer and the engine that works for it, from the first batch it asks for to the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker.agenda import Agenda, IndexedAgenda
from stoker.arguments import checked_seconds
from stoker.engine import Delivery
from stoker.engine_owner import EngineOwner
from stoker.intake import Intake
from stoker.interrupts import Hand
from stoker.mixing import Mixing
from stoker.observe import Failures, Meter, Setup, Stats
from stoker.settings import Settings
from stoker.showing import Showing
from stoker.steps import Steps
from stoker.stores import OpenStore
from stoker.turns import Turns
from stoker.workers.worker import Job


class Session:
    """Has the engine do what is on the agenda, and knows what the consumer has taken of it.

    What only some agendas can do is with its ``steps`` and ``mixing``.

    Args:
        name: What it is to the user, for messages.
        agenda: What there is to do.
        job: What a worker does.
        settings: How.
        failures: Takes note of samples that are left out.
        new_store: Makes a file for the workers' store, if they have one.
        reopen_store: Gives what opens that store now that the dataset has changed, or raises.
        setup: What only the front knows of how it works.
    """

    def __init__(
        self,
        name: str,
        agenda: Agenda,
        *,
        job: Job,
        settings: Settings,
        failures: Failures,
        new_store: Callable[[], int | None] | None = None,
        reopen_store: Callable[[], OpenStore | None] | None = None,
        setup: Setup | None = None,
    ) -> None:
        hand: Hand[Delivery] = Hand()  # what was offered to the consumer last
        self._name = name
        self._agenda, self._settings = agenda, settings
        workers = 0 if settings.workers.traits.is_inline else settings.workers.count
        self._meter = meter = Meter(workers, observe=settings.observe, setup=settings.completed(setup or Setup()))
        self._engine = EngineOwner(name, job, settings, hand, new_store, reopen_store, meter.look, meter.died)
        self._intake = Intake(agenda, self._engine, hand, settings.bridge, self._meter, failures)
        self._turns = Turns(name, self._engine, self._intake.end)
        self.steps = Steps(agenda, self._intake, self._turns)
        self.mixing = Mixing(agenda, self._engine, self._intake, self._turns, settings)
        self.showing = Showing(name, agenda, self._engine, meter, settings)

    @property
    def is_fresh(self) -> bool:
        """Whether it has never started, so that no worker has the plan yet, and was not closed."""
        return not self._engine.has_started and not self._engine.is_closed

    @property
    def shard(self) -> tuple[int, int]:
        return self._agenda.shard

    def set_shard(self, shard: tuple[int, int]) -> None:
        """Goes on as that shard, from where the consumer is. Only before the start.

        Raises:
            StateError: It is where only the shard that it was can go on.
        """
        self._agenda.set_shard(shard)
        self._engine.set_plan(self._agenda.plan)

    @property
    def epoch(self) -> int:
        """The one that is being taken, or that comes next."""
        return self._agenda.progress.epoch

    def __len__(self) -> int:
        """Batches in an epoch, as the dataset is now. A worker may have to be asked."""
        self._intake.recount()
        self.steps.count()
        return len(self._agenda)

    def known_length(self) -> int | None:
        """The same, where it is known without reading anything and without calling code of the user's."""
        agenda = self._agenda
        if not isinstance(agenda, IndexedAgenda) or not agenda.is_counted or agenda.units.order is not None:
            return None
        return None if self.mixing.is_endless else len(agenda)

    def state(self) -> dict[str, Any]:
        """Where the consumer is, with what it has by now, as JSON can hold it."""
        self.steps.count()
        return self._agenda.progress.state(self._intake.cursor())

    def load(self, state: dict[str, Any]) -> None:
        """Goes to where ``state`` was saved.

        Raises:
            StateError: It is damaged, or of something else.
        """
        self.steps.count()
        plan = self._agenda.plan
        self._intake.jump(self._agenda.progress.from_state(state))
        if self._agenda.plan != plan and self.is_fresh:
            self.set_shard(self.shard)  # so that the workers, too, start with the plan of the state

    def go_to(self, epoch: int) -> None:
        """To its beginning."""
        self._intake.jump(self._agenda.progress.go_to(epoch))

    def end_epoch(self) -> None:
        """After the last batch of it; what was prefetched of the next one stays."""
        progress = self._agenda.progress
        progress.cursor = progress.go_to(progress.epoch + 1)

    def offer(self) -> Delivery | None:
        """The next batch of the running epoch; None at its end. It counts as taken once its ``is_taken`` is set.

        Whoever is interrupted before that is offered it again.
        """
        intake = self._intake
        self.showing.display.tick()
        held = intake.hand.held
        if held is not None and held.unit is not None and held.is_taken and intake.is_in_step:
            nth = held.nth + 1
            if nth < len(held.unit.sizes):
                return intake.offer_next_of(held.unit, held, nth)
        delivery = self._turns.take(intake.offer)
        if delivery is None:
            self.showing.display.end_bar()
        return delivery

    def begin_epoch(self) -> None:
        """Has the workers make what comes from now on with the dataset as it is now.

        If it has changed since they got it, they are started anew, and what they have prefetched is thrown away.
        """
        self._turns.take(self._intake.begin_epoch)

    def warm_up(self, seconds: float | None) -> None:
        """Lets the workers get as far ahead as they may, for so long at most. None: for as long as it takes.

        Raises:
            ValueError: That is no number of seconds.
        """
        longest = checked_seconds(seconds)
        self._turns.take(lambda: self._intake.warm_up(longest))

    def pids(self) -> list[int]:
        """The worker processes that are up."""
        return self._engine.pids()

    def phase(self) -> str:
        """Where it is in its life, and on which workers, in words."""
        return f"workers={self._settings.workers!r}, {self._engine.phase}"

    def stats(self) -> Stats:
        return self.showing.observed.stats()

    def close(self) -> None:
        """Ends the workers and frees the memory, but for batches that are still held. May be called twice.

        From any thread, and from a signal's handler: whoever waits for a batch gets a ClosedError.
        """
        self.showing.observed.look()  # for the last time with an engine
        self._engine.is_closed = True  # from now on nobody begins anything
        self._agenda.close()
        try:
            self._turns.close()
        finally:
            self.showing.end()

    def check_usable(self) -> None:
        self._engine.check_usable()

    def __getstate__(self) -> dict[str, Any]:
        if self._engine.feed is not None or self._engine.is_closed:
            raise TypeError(f"a {self._name} that has been started cannot be pickled: pickle it before its first use")
        return vars(self)
