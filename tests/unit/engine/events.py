"""Runs, and what a machine is told of the workers that have them."""

from __future__ import annotations

from stoker.engine.messages import Died, Send
from stoker.plan import Run
from stoker.workers import Answer, Death
from stoker.workers.progress import AT_WORK, at_batch

SAMPLES = 5  # in each batch


def singles(count: int, per_epoch: int = 5):
    return [Run(k // per_epoch, k % per_epoch, 1, samples=SAMPLES) for k in range(count)]


def answer(send: Send) -> Answer:
    return Answer(send.worker, send.ticket, send.slot, results=[])


def death(worker: int, cause: str = "SIGKILL (-9)", unbegun: tuple[int, ...] = (), nth: int = 0, **more) -> Died:
    return Died(Death(worker, cause, at_batch(0, nth), **more), unbegun)


def died_at_work(worker: int, unbegun: tuple[int, ...] = ()) -> Died:
    """Nobody can tell which of its runs it was at."""
    return Died(Death(worker, "the loss of its node", AT_WORK), unbegun)
