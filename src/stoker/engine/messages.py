"""Events that the machine is told, and instructions that it gives. It knows nothing else of the world."""

from __future__ import annotations

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
class Arrived:
    """A worker is up, on that node. Where workers are announced, one is sent nothing before that."""

    worker: int
    node: str = ""


@dataclass(frozen=True, slots=True)
class Left:
    """A worker is to be let go: it makes what it has, and is sent nothing until it has arrived again."""

    worker: int


@dataclass(frozen=True, slots=True)
class Allowed:
    """So many times as many runs may be under way for each worker as at the start."""

    times: int


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
    """The consumer goes elsewhere: nobody wants what was offered so far, and other runs will be."""


@dataclass(frozen=True, slots=True)
class Offered:
    """The next run, in the order of the agenda. Only told while the machine ``wants`` one."""

    run: Run


@dataclass(frozen=True, slots=True)
class Paused:
    """The next run will take its time: the machine wants none before ``Resumed``, and delivers what is due first."""


@dataclass(frozen=True, slots=True)
class Resumed:
    """Nothing was due, so the next run is waited for, however slow it is to come."""


@dataclass(frozen=True, slots=True)
class Ended:
    """There are no more runs to offer."""


Event = (
    Asked
    | Finished
    | Died
    | Arrived
    | Left
    | Allowed
    | Released
    | Recalled
    | Sought
    | Offered
    | Paused
    | Resumed
    | Ended
)

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
class LogDeath:
    """Log that a worker has died, while working on that batch or none, and is restarted."""

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


Instruction = Spawn | Send | Recall | LogDeath | Deliver | Fail | Finish
