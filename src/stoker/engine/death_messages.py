"""What is said of a worker that died: the log line, the error, and the samples that were left out for it."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from stoker.engine.messages import Fail, Loss
from stoker.engine.units import Units
from stoker.errors import WorkerDied
from stoker.plan import Run
from stoker.workers import Death, Skipped

log = logging.getLogger("stoker")


def log_death(death: Death, over: str | None) -> None:
    """One line: who, while working on what, by which signal, probably why."""
    when = f"while working on {over}" if over else death.phase
    hung = f" Its stack:\n{death.stack}" if death.cause.startswith("a timeout") and death.stack else ""
    worker = f"worker {death.worker} ({death.where})" if death.where else f"worker {death.worker}"
    log.warning("%s died by %s", worker, f"{_story(death, when)}. Restarting it.{hung}")


def worker_died(fail: Fail, units: Units) -> WorkerDied:
    """The batch is given up."""
    death = fail.death
    if not fail.begun:
        return unmakeable(death, fail.deaths)
    error = WorkerDied(
        f"{units.name(fail.run)} killed its worker {fail.deaths} times, the last time by {_story(death, '')}. "
        f'Look at it with workers=0, or leave the one that does it out with on_error="quarantine"'
    )
    error.indices, error.epoch = units.indices(fail.run), fail.run.epoch
    return _with_stack(error, death)


def unmakeable(death: Death, deaths: int) -> WorkerDied:
    """No worker comes so far as to begin a batch."""
    return _with_stack(
        WorkerDied(
            f"{deaths} workers died before they could begin anything, the last one by {_story(death, death.phase)}. "
            f"Try the dataset with workers=0 to see why"
        ),
        death,
    )


def losses(found: Sequence[Loss], units: Units, run: Run) -> tuple[Skipped, ...]:
    """Samples that were found to kill their workers, and left out or replaced."""
    indices, places = units.indices(run), [loss.place for loss in found]
    return tuple(
        Skipped(indices[loss.place], _verdict(loss.death, is_first=loss.place not in places[:nth]), loss.death.stack)
        for nth, loss in enumerate(found)
    )


def whole_batch(fail: Fail, units: Units) -> tuple[Skipped, ...]:
    """A batch none of whose samples kills alone, but which does: all are left out."""
    words = f"{_verdict(fail.death)}, together with the others of its batch"
    return tuple(Skipped(index, words, fail.death.stack) for index in units.indices(fail.run))


def _verdict(death: Death, *, is_first: bool = True) -> str:
    who = "it" if is_first else "a sample that replaced it"
    return f"WorkerDied: {who} killed its worker by {_story(death, '')}"


def _story(death: Death, when: str) -> str:
    return death.cause + (f" {when}" if when else "") + (f"; likely cause: {death.likely}" if death.likely else "")


def _with_stack(error: WorkerDied, death: Death) -> WorkerDied:
    error.pid = death.pid or None
    if death.stack:
        error.add_note(f"stoker: where the worker's code was:\n{death.stack}")
    return error
