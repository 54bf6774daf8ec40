"""Events that the machine is told, and instructions that it gives. It knows nothing else of the world."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from stoker.plan import Run
from stoker.workers import Answer, Death

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

    death: Death
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
    """From now on these runs, in this order, and none of those before. ``samples``: how many a batch has.

    Out of ``runs`` may come None: the next one will take its time, so first deliver what is due.
    """

    runs: Iterator[Run | None]
    samples: Callable[[Run], int]


@dataclass(frozen=True, slots=True)
class Resumed:
    """Nothing was due, so go on asking for runs, though the next may be slow to come."""


Event = Asked | Finished | Died | Released | Recalled | Sought | Resumed

# Instructions


@dataclass(frozen=True, slots=True)
class Spawn:
    """Start this worker, for the first time or in place of a dead one."""

    worker: int


@dataclass(frozen=True, slots=True)
class Send:
    """Have this worker make this run, in this slot, but for the samples at the places that are to be left out."""

    worker: int
    ticket: int
    run: Run
    slot: int
    left_out: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Recall:
    """Take back a request that this worker has not begun, for one that is idle. Answer with ``Recalled``."""

    worker: int


@dataclass(frozen=True, slots=True)
class Mourn:
    """Say that a worker has died, over that batch or over none, and that another takes its place."""

    death: Death
    run: Run | None


@dataclass(frozen=True, slots=True)
class Loss:
    """The sample at that place of its batch kills whoever makes it, the last time so: it was left out."""

    place: int
    death: Death


@dataclass(frozen=True, slots=True)
class Deliver:
    """Hand this over; ``copy``: too many slots are held already, so give copies and release the slot at once."""

    run: Run
    answer: Answer
    copy: bool
    losses: tuple[Loss, ...] = ()


@dataclass(frozen=True, slots=True)
class Fail:
    """The run, a single batch, is given up after so many deaths, the last of them this one.

    ``begun``: the batch has killed them; else none of them even came to begin anything.
    """

    run: Run
    death: Death
    deaths: int
    begun: bool


@dataclass(frozen=True, slots=True)
class Finish:
    """There are no more runs."""


Instruction = Spawn | Send | Recall | Mourn | Deliver | Fail | Finish
