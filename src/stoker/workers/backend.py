"""What the engine and a place where workers live say to each other.

The engine calls ``start``, ``send``, ``recall``, ``wait`` and ``news`` from one thread at a time. Only ``wait`` blocks,
and whoever is interrupted in it has lost nothing. A request that was sent comes back in the ``news`` just once: as an
``Answer``, or with its worker's ``Death``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from stoker.memory import Packed
from stoker.plan import Run
from stoker.sources import SlowSamples
from stoker.workers.progress import NOT_UP, nth_batch, phase


class Request(NamedTuple):
    """Make this run of a dataset of ``length``, write it into this slot.

    ``left_out``: places within the batch (a run of one) whose samples are not to be touched. ``item``: what to work on,
    where there is no dataset but a stream of items.
    """

    ticket: int
    run: Run
    length: int
    slot: int
    left_out: tuple[int, ...] = ()
    item: Any = None


class Skipped(NamedTuple):
    """A sample that was left out of its batch. ``error``: type and message, or what became of the worker."""

    sample: int
    error: str
    traceback: str


class Timing(NamedTuple):
    """When a worker made a batch, in nanoseconds of ``perf_counter_ns``: a clock that all processes of a machine share.

    Attributes:
        free: It had nothing to do from then on. Of the later batches of a run: the same as ``began``.
        began: It began with ``dataset[i]``.
        fetched: The samples were there, and it began to collate them and to write them.
        written: They lay in the worker's slot.
        arrived: They lay in the consumer's: later only where that is on another machine, or as good as on one.
    """

    free: int
    began: int
    fetched: int
    written: int
    arrived: int

    def moved(self, nanoseconds: int, arrived: int) -> Timing:
        """The same on another clock, which is ahead of the worker's by so much."""
        free, began, fetched, written, _ = self
        ahead = nanoseconds
        return Timing(free + ahead, began + ahead, fetched + ahead, written + ahead, arrived)


class Made(NamedTuple):
    """One batch of the run lies in the slot.

    Attributes:
        packed: Where, and in which form.
        samples: How many it has.
        skipped: Samples that were left out.
        notes: What the user should know, such as that a cache is full.
        timing: When it was made.
        calls: Samples that ``dataset[i]`` was called for; fewer where a store had some.
        cpu: Nanoseconds of processor time that the run took, told with the last of its batches, as to ask for it takes
            a microsecond; of the whole process where the worker has one of its own.
        retries: How often something of it was tried again.
        slow: Those of its samples that took much longer than the others, if there are any.
    """

    packed: Packed
    samples: int
    skipped: tuple[Skipped, ...]
    notes: tuple[str, ...]
    timing: Timing
    calls: int = 0
    cpu: int = 0
    retries: int = 0
    slow: SlowSamples | None = None


class Failed(NamedTuple):
    """The user's code raised: to be raised again where the batch would have come."""

    error: BaseException


class Answer(NamedTuple):
    """A run is done: one result a batch."""

    worker: int
    ticket: int
    slot: int
    results: list[Made | Failed]


class Death(NamedTuple):
    """A worker has ended; whatever it had been sent and not answered is lost. What it had not begun can be recalled.

    Attributes:
        worker: Its number.
        cause: As in ``SIGKILL (-9)``.
        progress: How far it was; see ``progress.py``.
        likely: Why, as far as one can tell, and what to change.
        stack: Where its code was, if it had time to say so.
        may_still_write: Its code may still be running, and write into its slot: a thread, which can't be killed.
        pid: Of its process; 0 where it had none, or was not up yet.
        where: It lived, as in ``actor 2d2d1ebe on node 10.0.0.7``; empty where that is this machine.
    """

    worker: int
    cause: str
    progress: int = NOT_UP
    likely: str = ""
    stack: str = ""
    may_still_write: bool = False
    pid: int = 0
    where: str = ""

    @property
    def nth(self) -> int:
        """The batch of its run that it was making, from 1; 0 if that is not known."""
        return nth_batch(self.progress)

    @property
    def phase(self) -> str:
        """What it was doing where it was making no batch."""
        return phase(self.progress)


class Arrival(NamedTuple):
    """A worker is up, on that node. Told before all else of it, where workers are announced (``traits.py``)."""

    worker: int
    node: str = ""


class Departure(NamedTuple):
    """A worker is not to be sent anything more; what it has it still makes. ``Arrival`` tells when it is up again."""

    worker: int


class Allowance(NamedTuple):
    """So many times as many runs may be under way for each worker as usual."""

    times: int


News = Answer | Death | Arrival | Departure | Allowance


class Backend(Protocol):
    """A place where workers live."""

    def start(self, worker: int) -> None:
        """Makes a worker of that number, in place of a dead one if there was one."""

    def send(self, worker: int, request: Request) -> None:
        """Queues a request behind those that the worker has."""

    def recall(self, worker: int) -> int | None:
        """Takes back a request that the worker has not begun: its ticket, or None where it has begun all."""

    def wait(self, timeout: float | None) -> None:
        """Until there may be news, or for so many seconds (None: for ever). An interrupt of it loses nothing."""

    def news(self) -> Sequence[News]:
        """What has come since the last call. Does not block."""

    def wake(self) -> None:
        """Makes a ``wait`` that blocks return. The only method that another thread may call, also after ``close``."""

    def progress(self, worker: int) -> int:
        """How far it is: a number that changes with each batch it begins. See ``progress``."""

    def end(self, worker: int, *, at_once: bool) -> None:
        """Ends a worker that hangs: with time to say where its code is, or at once. ``news`` tells of its death."""

    def pids(self) -> list[int]:
        """The processes of the workers that are up."""

    def length(self) -> int | Death | None:
        """The dataset's length, as worker 0 finds it, or a death on the way; None: ``wait``, and ask again.

        No worker has been sent anything yet.
        """

    def close(self) -> None:
        """Ends all workers and frees what they used. May be called twice, and again by who was interrupted in it."""
