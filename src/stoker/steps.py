"""Steps: the batches of an epoch by their number, where a plan says which samples each one has."""

from __future__ import annotations

from stoker.agenda import Agenda, IndexedAgenda
from stoker.intake import Intake
from stoker.plan import Cursor, Plan, batch_at, passed_over
from stoker.turns import Turns


class Steps:
    """Goes to any batch, and tells what is in it. Only for a dataset with an index.

    Args:
        agenda: What there is to do.
        intake: Goes on elsewhere.
        turns: One thread at a time uses the engine.
    """

    def __init__(self, agenda: Agenda, intake: Intake, turns: Turns) -> None:
        self._agenda, self._intake, self._turns = agenda, intake, turns

    def count(self) -> None:
        """Has the dataset's length found, if only a worker can tell it."""
        if not self._agenda.is_counted:
            self._turns.take(self._intake.find_length)

    def seek(self, epoch: int, step: int) -> None:
        """To the batch of that step.

        Raises:
            IndexError: There is none.
        """
        batch = batch_at(self._plan(), epoch, step)
        self._intake.jump(Cursor(epoch, batch.position))

    def skip(self, count: int) -> None:
        """Over so many batches from where the consumer is."""
        plan = self._plan()
        self._intake.jump(passed_over(self._intake.cursor(), plan, count))

    def indices(self, epoch: int, step: int) -> list[int]:
        """Of the samples of that batch."""
        plan = self._plan()
        return list(plan.indices(batch_at(plan, epoch, step)))

    def _plan(self) -> Plan:
        self._intake.recount()
        self.count()
        assert isinstance(self._agenda, IndexedAgenda)
        plan = self._agenda.progress.plan
        assert isinstance(plan, Plan)
        return plan
