"""Recovery: what becomes of the runs that a dead worker had. Why it is so is in docs/design/recovery.md."""

from __future__ import annotations

from stoker.engine.backlog import Backlog
from stoker.engine.dispatch import Dispatch
from stoker.engine.messages import Died, Fail
from stoker.engine.roster import Roster
from stoker.engine.slot_pool import SlotPool
from stoker.plan import Run
from stoker.workers import Death
from stoker.workers.progress import AT_WORK

# Deaths that may have had another reason, such as the loss of a node: more of them are held against a batch. Many nodes
# may be lost within seconds, as those of a rack; but a batch that does it must not end one after the other.
SUSPICIONS_ALLOWED = 10


class Recovery:
    """Has them sent again, batch by batch, or gives up the batch that the worker has died over too often.

    Args:
        backlog: Where the runs are.
        dispatch: That sends them again.
        roster: Who had what.
        slots: Where a run gets another slot.
        deaths_allowed: After so many deaths over one batch it is given up, or searched.
        leave_out: Search it for the sample that kills, and leave that out.
    """

    def __init__(
        self,
        backlog: Backlog,
        dispatch: Dispatch,
        roster: Roster,
        slots: SlotPool,
        *,
        deaths_allowed: int,
        leave_out: bool,
    ) -> None:
        self.futile_deaths = 0  # of workers that had begun nothing, since the last answer: set to 0 by each
        self._backlog, self._dispatch, self._roster, self._slots = backlog, dispatch, roster, slots
        self._deaths_allowed = deaths_allowed
        self._leave_out = leave_out

    def died(self, event: Died) -> Run | None:
        """The batch over which the worker has died, if over any."""
        death, backlog = event.death, self._backlog
        tickets = self._roster.died(death.worker)
        lost, blamed = [], None
        for ticket in tickets:
            begun = ticket not in event.unbegun
            if backlog.is_abandoned(ticket):
                backlog.drop(ticket, may_still_write=begun and death.may_still_write)
            elif not begun:
                lost.append(ticket)
            elif death.progress == AT_WORK:
                lost.extend(self._suspected(ticket, death))
            else:
                blamed = backlog.entries[ticket].run.split()[max(death.nth, 1) - 1]
                lost.extend(self._blamed(ticket, death))
        self._dispatch.put_back(lost)
        if len(event.unbegun) == len(tickets):
            self._note_futile_death(death)
        return blamed

    def _suspected(self, ticket: int, death: Death) -> list[int]:
        """The tickets to issue again in place of one over which its worker may have died, or for another reason."""
        entry = self._backlog.entries[ticket]
        if entry.run.size > 1:
            return self._backlog.divide(ticket)
        entry.suspicions += 1
        return [ticket] if entry.suspicions <= SUSPICIONS_ALLOWED else self._blamed(ticket, death)

    def _blamed(self, ticket: int, death: Death) -> list[int]:
        """The tickets to issue again in place of one whose worker has died over it."""
        entry = self._backlog.entries[ticket]
        if death.may_still_write:
            entry.slot = self._slots.take()  # for good: somebody may still write into the old one
        if entry.run.size > 1:
            parts = self._backlog.divide(ticket)
            blamed, death = parts[max(death.nth, 1) - 1], death._replace(may_still_write=False)
            return [part for part in parts if part != blamed or self._blamed(part, death)]
        entry.blame(death, self._deaths_allowed, entry.run.samples if self._leave_out else 0)
        if entry.given_up is None:
            return [ticket]
        self._backlog.give_up(ticket, entry.given_up)
        return []

    def _note_futile_death(self, death: Death) -> None:
        """Workers that die before they begin anything will do so for ever: give up the batch that is due."""
        self.futile_deaths += 1
        if self.futile_deaths < self._deaths_allowed * len(self._roster):
            return
        first = self._backlog.first
        if first is None or first not in (line := self._dispatch.line_of(first)):
            return
        line.remove(first)
        due, *others = self._backlog.divide(first)
        self._dispatch.put_back(others)
        given_up = Fail(self._backlog.entries[due].run, death, self.futile_deaths, begun=False)
        self._backlog.give_up(due, given_up)
        self.futile_deaths = 0
