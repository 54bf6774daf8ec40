"""What an engine has under way."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Usage:
    """How much of everything is in use at a moment.

    Attributes:
        runs: Issued to workers or finished, and not yet delivered.
        workers: That have something to do.
        slots: That there are, free ones included: memory is bounded by these.
        held: Slots that the consumer holds.
        nodes: Where each worker is; empty strings for this machine.
        up: How many workers there are, where they come and go.
        filled: The most slots that had a batch for the consumer in them at any time, or were being written into.
    """

    runs: int = 0
    workers: int = 0
    slots: int = 0
    held: int = 0
    nodes: tuple[str, ...] = ()
    up: int | None = None
    filled: int = 0
