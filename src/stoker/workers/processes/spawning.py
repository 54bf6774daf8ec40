"""``start="spawn"``: each worker is a fresh interpreter, which shares nothing with the consumer."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

from stoker.memory import Segment
from stoker.workers.processes.launcher import ChildrenLauncher
from stoker.workers.processes.service import Ends, die_with, leave, serve, settle_in
from stoker.workers.processes.shipment import SINGLE_THREADED, Shipment, load_job


def spawning(shipment: Shipment, environments: Sequence[Mapping[str, str]]) -> ChildrenLauncher:
    """``environments``: variables of each worker's own, if there are any."""

    def start(worker: int, ends: Ends) -> int:
        return _spawn(worker, ends, shipment.segment(), environments[worker] if environments else {})

    return ChildrenLauncher(start)


_FRESH = (
    "import sys; sys.path[:] = {path!r}; from stoker.workers.processes.spawning import fresh_worker; "
    "fresh_worker({worker}, {ends!r}, {segment}, {consumer}, {own!r})"
)


def _spawn(worker: int, ends: Ends, segment: Segment, own: Mapping[str, str]) -> int:
    # Of its own variables only the names: everybody can read a command line.
    code = _FRESH.format(
        path=sys.path, worker=worker, ends=tuple(ends), segment=segment.fd, consumer=os.getpid(), own=tuple(own)
    )
    # Not waited for by subprocess: its pid is all we need, and the launcher reaps it.
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.DEVNULL,
        pass_fds=[*ends, segment.fd],
        env=SINGLE_THREADED | dict(os.environ) | dict(own),
    )
    process.returncode = 0  # else its destructor would warn that it was not waited for
    return process.pid


def fresh_worker(worker: int, ends: tuple[int, ...], segment: int, consumer: int, own: tuple[str, ...]) -> None:
    """The main function of a spawned worker. ``own``: names of the variables that were set for it alone."""
    settle_in()
    die_with(consumer)
    variables = {name: os.environ[name] for name in own}
    serve(worker, Ends(*ends), lambda: load_job(Segment(segment), variables))
    leave()
