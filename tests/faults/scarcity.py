"""Programs that are short of something: they run in a process of their own, and must neither hang nor crash."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

PRELUDE = """
import gc, os, resource, sys, threading, numpy as np, psutil, stoker
from stoker import Inline, Loader, Processes, Threads

MiB = 2**20

class Big:
    def __init__(self, length, mib=1):
        self.length, self.mib = length, mib

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        return np.full(int(self.mib * MiB), index, np.uint8)

def number(batch):
    '''Which sample it is, if it is whole.'''
    assert int(batch.min()) == int(batch.max())
    return int(batch.max())

def go_on_after(kinds, loader, held):
    '''An epoch to its end, past errors; whatever is held is dropped at each. What came, and what was raised.'''
    numbers, errors, iterator = [], [], iter(loader)
    while True:
        try:
            held.append(next(iterator))
        except StopIteration:
            return numbers, errors
        except kinds as error:
            errors.append(str(error))
            held.clear()
        else:
            numbers.append(number(held[-1]))

def holdings():
    gc.collect()
    process = psutil.Process()
    return process.num_fds(), len(process.children(recursive=True)), threading.active_count()
"""


def run(code: str, *, within: tuple[str, ...] = (), timeout: float = 60) -> str:
    """What the program prints; that it hangs, dies or complains is a failure."""
    command = [*within, sys.executable, "-c", PRELUDE + textwrap.dedent(code)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        try:
            printed, errors = program.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            program.kill()
            pytest.fail(f"it hangs: {program.communicate()[1][-2000:]}")
    assert program.returncode == 0, f"exit code {program.returncode}\n{printed}\n{errors[-2000:]}"
    assert "SIGBUS" not in errors
    return printed


@contextlib.contextmanager
def cgroup(kind: str, **limits: int) -> Iterator[tuple[str, ...]]:
    """A new cgroup with these limits (in the words of either version), as the beginning of a command to run in it."""
    for root in (Path("/sys/fs/cgroup", kind), Path("/sys/fs/cgroup")):
        group = root / f"stoker-{os.getpid()}"
        if _made(group, {f"{kind}.{name}": limit for name, limit in limits.items()}):
            break
    else:
        pytest.skip(f"no cgroup with a limit of {kind} can be made here")
    try:
        yield "sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"
    finally:
        _remove(group)


def _made(group: Path, limits: dict[str, int]) -> bool:
    """Whether there is such a group now, with those of the limits that this version knows."""
    with contextlib.suppress(OSError):
        group.mkdir()
        try:
            known = [name for name in limits if (group / name).exists()]
            for name in known:
                (group / name).write_text(str(limits[name]))
        except OSError:
            known = []
        if known:
            return True
        group.rmdir()
    return False


def _remove(group: Path) -> None:
    deadline = time.monotonic() + 5
    while (group / "cgroup.procs").read_text() and time.monotonic() < deadline:
        os.sched_yield()  # the killed are on their way out
    group.rmdir()
