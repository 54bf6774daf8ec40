"""``start="fork"``: workers are forked from the consumer as it is. Nothing is pickled."""

from __future__ import annotations

import os
import traceback
import warnings

import numpy.random  # noqa: F401  # numpy loads it when first used, which would be in every worker anew

from stoker.workers.processes.launcher import ChildrenLauncher
from stoker.workers.processes.service import Ends, die_with, leave, serve, settle_in
from stoker.workers.worker import Job


def forking(job: Job) -> ChildrenLauncher:
    return ChildrenLauncher(lambda worker, ends: _fork(worker, ends, job))


def _fork(worker: int, ends: Ends, job: Job) -> int:
    consumer = os.getpid()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of threads: whoever asks for start="fork" takes that on
        pid = os.fork()
    if pid:
        return pid
    try:
        settle_in()
        die_with(consumer)
        serve(worker, ends, lambda: job)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    leave()
    raise AssertionError("a process that has left goes on")
