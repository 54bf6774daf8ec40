"""Programs whose workers are busy, to be ended in one way or another.

Each runs in a process group of its own, as from a terminal. Its workers say "busy" on the standard output that they all
share; that its pipes end means that nobody holds them any more.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import subprocess
import sys
import textwrap
import time

import psutil

GONE_S = 2.0  # for workers to be gone after their consumer
ENDS_S = 3.0  # for a program to end when told to, on a busy machine

BUSY = """
import os, signal, sys, time, stoker, stoker.workers.threads
from stoker import Processes, Threads
stoker.workers.threads._JOIN_S = 0.5  # a thread can't be killed; a user might wait longer than we want to here

class Busy:
    def __len__(self):
        return 1000

    def __getitem__(self, index):
        if index:
            os.write(1, b"busy\\n")
            time.sleep(60)
        return index

def wait():
    os.write(1, b"ready\\n")
    next(iterator)

def wait_for_a_line():
    os.write(1, b"ready\\n")
    sys.stdin.readline()

loader = stoker.Loader(Busy(), 1, workers=WORKERS)
iterator = iter(loader)
assert next(iterator).tolist() == [0]
"""


class Program:
    """A consumer that waits, and its workers that are busy."""

    def __init__(self, process: subprocess.Popen, count: int) -> None:
        self._process = process
        self.lines = process.stdout, process.stderr
        found = sorted(process.stdout.readline() for _ in range(count + 1))
        assert found == [*["busy\n"] * count, "ready\n"]
        self.pid = process.pid
        self.workers = [child.pid for child in psutil.Process(self.pid).children(recursive=True)]
        self._watched = [os.pidfd_open(pid) for pid in self.workers]

    def end(self, line: str = "") -> tuple[int, str]:
        """Its exit code and what it wrote to its standard error, when it and all its workers are gone."""
        began = time.monotonic()
        _, errors = self._process.communicate(line, timeout=20)
        assert time.monotonic() - began < ENDS_S
        for pidfd in self._watched:
            assert select.select([pidfd], [], [], GONE_S)[0], "a worker has outlived its consumer"
        return self._process.returncode, errors

    def close(self) -> None:
        for pidfd in self._watched:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            os.close(pidfd)


@contextlib.contextmanager
def program(code: str, workers: str, *, prelude: str = BUSY, folder: str = ""):
    process = subprocess.Popen(
        [sys.executable, "-c", (prelude + textwrap.dedent(code)).replace("WORKERS", workers)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ | ({"TMPDIR": folder} if folder else {}),
    )
    with process, contextlib.ExitStack() as undo:
        undo.callback(process.kill)
        program = Program(process, int(re.search(r"\d+", workers)[0]))
        undo.callback(program.close)
        yield program
