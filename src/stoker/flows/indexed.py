"""Batches of a dataset with an index."""

from __future__ import annotations

from typing import Any

from stoker.observe import Stats
from stoker.plan import Cursor, from_state, to_state
from stoker.session import Session


class IndexedFlow:
    """A session knows all there is to know: the plan, and the cursor in it."""

    def __init__(self, session: Session) -> None:
        self.session = session

    @property
    def epoch(self) -> int:
        return self.session.cursor.epoch

    def __len__(self) -> int:
        return len(self.session.plan)

    def take(self) -> Any:
        delivery = self.session.take()
        if delivery is not None:
            return delivery.data
        self.session.cursor.next_epoch()
        raise StopIteration

    def go_to(self, epoch: int) -> None:
        self.session.jump(Cursor(epoch))

    def state(self) -> dict[str, Any]:
        return to_state(self.session.cursor, self.session.plan)

    def load(self, state: dict[str, Any]) -> None:
        self.session.jump(from_state(state, self.session.plan))

    def close(self) -> None:
        self.session.close()

    def stats(self) -> Stats:
        return self.session.stats()
