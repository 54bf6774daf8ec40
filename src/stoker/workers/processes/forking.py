"""``start="fork"``: workers are forked from the consumer as it is. Nothing is pickled."""

from __future__ import annotations

import os
import signal
import warnings
from typing import NoReturn

import numpy.random  # noqa: F401  # numpy loads it when first used, which would be in every worker anew

from stoker.workers.imports import become_worker, depth_of_workers
from stoker.workers.processes.launcher import ChildrenLauncher
from stoker.workers.processes.service import Ends, die_with, fail, flush_output, leave, serve, settle_in
from stoker.workers.processes.signals import reset_signals
from stoker.workers.worker import Job


def forking(job: Job) -> ChildrenLauncher:
    return ChildrenLauncher(lambda worker, ends, lifeline: _fork(worker, ends, lifeline, job))


def _fork(worker: int, ends: Ends, lifeline: int, job: Job) -> int:
    flush_output()
    consumer, depth = (os.getpid(), lifeline), depth_of_workers()
    # An interrupt in the child, before it is a worker, would make it go on as the consumer.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of threads: whoever asks for start="fork" takes that on
            pid = os.fork()
        if not pid:
            _work(worker, ends, job, consumer, depth, mask)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    return pid


def _work(worker: int, ends: Ends, job: Job, consumer: tuple[int, int], depth: int, mask: set[int]) -> NoReturn:
    try:
        reset_signals()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        become_worker(depth)
        settle_in()
        die_with(*consumer)
        serve(worker, ends, lambda: job)
    except BaseException:
        fail()
    leave()
