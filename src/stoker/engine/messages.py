"""Events that the machine is told, and instructions that it gives. It knows nothing else of the world."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stoker.plan import Run
from stoker.workers import Answer

# Events


@dataclass(frozen=True, slots=True)
class Asked:
    """The consumer wants the next run: it has handed out all batches of the last one."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A worker has answered: the batches of a run are in their slot, or the user's code raised."""

    answer: Answer


@dataclass(frozen=True, slots=True)
class Died:
    """A worker has ended, and what it had not answered is lost; it had not begun ``unbegun``."""

    worker: int
    cause: str
    unbegun: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Released:
    """The last array over a slot is gone: it may be used again."""

    slot: int


@dataclass(frozen=True, slots=True)
class Recalled:
    """The answer to ``Recall``: the ticket that was taken back, or None if the worker had begun all it had."""

    worker: int
    ticket: int | None


@dataclass(frozen=True, slots=True)
class Sought:
    """From now on these runs, in this order, and none of those before."""

    runs: Iterator[Run]


Event = Asked | Finished | Died | Released | Recalled | Sought

# Instructions


@dataclass(frozen=True, slots=True)
class Spawn:
    """Start this worker, for the first time or in place of a dead one."""

    worker: int


@dataclass(frozen=True, slots=True)
class Send:
    """Have this worker make this run, in this slot."""

    worker: int
    ticket: int
    run: Run
    slot: int


@dataclass(frozen=True, slots=True)
class Recall:
    """Take back a request that this worker has not begun, for one that is idle. Answer with ``Recalled``."""

    worker: int


@dataclass(frozen=True, slots=True)
class Deliver:
    """Hand this over; ``copy``: too many slots are held already, so give copies and release the slot at once."""

    run: Run
    answer: Answer
    copy: bool


@dataclass(frozen=True, slots=True)
class Fail:
    """The run, a single batch, has killed ``deaths`` workers, the last of them by ``cause``: raise."""

    run: Run
    cause: str
    deaths: int


@dataclass(frozen=True, slots=True)
class Finish:
    """There are no more runs."""


Instruction = Spawn | Send | Recall | Deliver | Fail | Finish
