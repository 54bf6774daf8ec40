"""What a loader asks of a flow."""

from __future__ import annotations

from typing import Any, Protocol

from stoker.observe import Stats
from stoker.session import Session


class Flow(Protocol):
    """Batches, epoch after epoch, and where the consumer is among them."""

    session: Session

    @property
    def epoch(self) -> int:
        """The one that is being taken, or that comes next."""

    def __len__(self) -> int:
        """Batches in an epoch."""

    def take(self) -> Any:
        """The next batch of this epoch.

        Raises:
            StopIteration: It has ended; the next one begins with the next call.
        """

    def go_to(self, epoch: int) -> None:
        """To its beginning."""

    def state(self) -> dict[str, Any]:
        """Where the consumer is, as JSON can hold it."""

    def load(self, state: dict[str, Any]) -> None:
        """Goes to where ``state`` was saved."""

    def close(self) -> None:
        """Ends the workers, and holds no batch any more."""

    def stats(self) -> Stats:
        """Figures since the start."""
