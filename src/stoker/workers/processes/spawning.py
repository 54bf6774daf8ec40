"""``start="spawn"``: each worker is a fresh interpreter, which shares nothing with the consumer."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from stoker.memory import Segment
from stoker.workers.imports import become_worker, depth_of_workers
from stoker.workers.processes.board import Board
from stoker.workers.processes.interpreter import Complaints, start_interpreter
from stoker.workers.processes.launcher import ChildrenLauncher
from stoker.workers.processes.lifelines import NO_LIFELINE
from stoker.workers.processes.service import Ends, die_with, leave, serve, settle_in
from stoker.workers.processes.shipment import Shipment, load_job
from stoker.workers.processes.surroundings import SINGLE_THREADED


def spawning(shipment: Shipment, environments: Sequence[Mapping[str, str]]) -> ChildrenLauncher:
    """``environments``: variables of each worker's own, if there are any."""

    def start(worker: int, ends: Ends, lifeline: int) -> int:
        return _spawn(worker, ends, lifeline, shipment.segments(), environments[worker] if environments else {})

    return ChildrenLauncher(start)


def _spawn(worker: int, ends: Ends, lifeline: int, segments: tuple[Segment, Segment], own: Mapping[str, str]) -> int:
    job = tuple(segment.fd for segment in segments)
    process = start_interpreter(
        (__name__, fresh_worker.__name__),
        [worker, tuple(ends), job, (os.getpid(), lifeline), depth_of_workers(), tuple(own)],
        descriptors=[*ends, *job, *([] if lifeline == NO_LIFELINE else [lifeline])],
        complaints=Complaints(ends.board, Board.place_of_stack(worker)),
        variables=SINGLE_THREADED | dict(os.environ) | dict(own),
    )
    # Not waited for by subprocess: its pid is all we need, and the launcher reaps it.
    process.returncode = 0  # else its destructor would warn that it was not waited for
    return process.pid


def fresh_worker(
    worker: int,
    ends: tuple[int, ...],
    job: tuple[int, int],
    consumer: tuple[int, int],
    depth: int,
    own: tuple[str, ...],
) -> None:
    """The main function of a spawned worker.

    ``consumer``: its process, and our end of the lifeline. ``own``: names of the variables that were set for it alone.
    """
    become_worker(depth)
    settle_in()
    die_with(*consumer)
    variables = {name: os.environ[name] for name in own}
    serve(worker, Ends(*ends), lambda: load_job(job, variables))
    leave()
