"""What the engine and a place where workers live say to each other.

The engine calls ``start``, ``send``, ``recall`` and ``wait`` from the consumer's thread only. ``send`` never blocks. A
request that was sent comes back from ``wait`` just once: as an ``Answer``, or with its worker's ``Death``.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from stoker.memory import Packed
from stoker.plan import Run


class Request(NamedTuple):
    """Make this run of a dataset of ``length``, write it into this slot, which has ``capacity`` bytes so far."""

    ticket: int
    run: Run
    length: int
    slot: int
    capacity: int


class Made(NamedTuple):
    """One batch of the run lies in the slot. Times in nanoseconds: ``dataset[i]``, and collating and writing."""

    packed: Packed
    samples: int
    skipped: int
    fetching: int
    writing: int


class Failed(NamedTuple):
    """The user's code raised: to be raised again where the batch would have come."""

    error: BaseException


class Answer(NamedTuple):
    """A run is done: one result a batch. ``idle``: nanoseconds that the worker had waited for it."""

    worker: int
    ticket: int
    slot: int
    capacity: int
    idle: int
    results: list[Made | Failed]


class Death(NamedTuple):
    """A worker has ended; whatever it had been sent and not answered is lost.

    ``cause``: as in ``SIGKILL (-9)``. ``unbegun``: tickets that it had been sent and had not looked at.
    """

    worker: int
    cause: str
    unbegun: tuple[int, ...]


class Backend(Protocol):
    """A place where workers live."""

    def start(self, worker: int) -> None:
        """Makes a worker of that number, in place of a dead one if there was one."""

    def send(self, worker: int, request: Request) -> None:
        """Queues a request behind those that the worker has."""

    def recall(self, worker: int) -> int | None:
        """Takes back a request that the worker has not begun: its ticket, or None where it has begun all."""

    def wait(self, block: bool) -> list[Answer | Death]:
        """What has come since the last call; blocks until there is something, if asked to."""

    def length(self) -> int:
        """The dataset's length, as a worker finds it. Worker 0 must have been started and have nothing to do."""

    def close(self) -> None:
        """Ends all workers and frees what they used. May be called twice."""
