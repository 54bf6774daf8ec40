"""The parent of the contenders: starts one child for each, and lets them run in turn."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import memory
from benchmarks.results import Round, WorkloadResult
from benchmarks.workloads import Workload

_START_SLACK_S = 60.0  # for imports, the dataset and the workers
_ROUND_SLACK_S = 60.0
_STOP_S = 15.0


@dataclass(frozen=True)
class Settings:
    """How long to measure, after a warm-up of an epoch or at most `warm_up` seconds.

    `pauses`: a contender's process is stopped while others are measured, as one that never sleeps would disturb them.
    """

    rounds: int
    seconds: float
    warm_up: float
    shuffle: bool
    scratch: Path
    gigabytes: float = 1.0  # of chunk files
    pauses: bool = False


class ContenderError(Exception):
    """A contender that is not installed, failed, or went silent; the message is one line."""


class Child:
    """The process of one contender."""

    def __init__(self, contender: str, workload: str, settings: Settings) -> None:
        command = [sys.executable, "-m", "benchmarks.child", contender, workload, str(settings.scratch)]
        self._warm_up, self._pauses = settings.warm_up, settings.pauses
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 -- closed by stop()
        self._process = subprocess.Popen(
            [*command, f"--warm-up={settings.warm_up}", *["--shuffle"] * settings.shuffle],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env=os.environ | {"TMPDIR": str(settings.scratch)},  # so that what a peer leaves behind goes with the run
            start_new_session=True,  # so that the whole family can be ended, and Ctrl-C comes to the parent alone
        )
        self._buffer = b""

    def wait_ready(self) -> None:
        self._answer(self._warm_up + _START_SLACK_S)
        self._pause()

    def round(self, seconds: float) -> Round:
        self._resume()
        self._send(f"round {seconds}")
        measured = Round(**self._answer(seconds + _ROUND_SLACK_S)["round"])
        self._pause()
        return measured

    def stop(self) -> None:
        try:
            self._resume()
            self._send("stop")
            self._process.wait(_STOP_S)
        except (ContenderError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        finally:
            memory.end_session(self._process.pid)
            for file in (self._process.stdin, self._process.stdout, self._stderr):
                if file is not None:
                    file.close()

    def _pause(self) -> None:
        if self._pauses:
            self._process.send_signal(signal.SIGSTOP)

    def _resume(self) -> None:
        if self._pauses:
            self._process.send_signal(signal.SIGCONT)

    def _send(self, line: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise ContenderError(self._last_words()) from None

    def _answer(self, timeout: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        deadline = time.monotonic() + timeout
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._process.stdout], [], [], left)[0]:
                raise ContenderError(f"no answer in {timeout:.0f} s")
            chunk = os.read(self._process.stdout.fileno(), 65536)
            if not chunk:
                raise ContenderError(self._last_words())
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise ContenderError(answer["error"])
        return answer

    def _last_words(self) -> str:
        self._stderr.seek(0)
        lines = self._stderr.read().decode(errors="replace").strip().splitlines()
        return lines[-1][:200] if lines else "the process ended without a word"


class Race:
    """All contenders of one workload, alive and warm at once, measured one at a time."""

    def __init__(self, workload: Workload, settings: Settings, on_step: Callable[[str, WorkloadResult], None]) -> None:
        self._workload = workload
        self._settings = settings
        self._on_step = on_step
        self._children: dict[str, Child] = {}
        self.result = WorkloadResult(workload)

    def run(self) -> WorkloadResult:
        try:
            for contender in self._workload.contenders:
                self._children[contender] = Child(contender, self._workload.name, self._settings)
            for contender in self._workload.contenders:  # which warm up side by side
                self._warm_up(contender)
            self._on_step(f"{self._workload.name}: what was written goes to disk", self.result)
            os.sync()  # now, and not while somebody is measured
            for index in range(self._settings.rounds):
                self._round(index)
        finally:
            for child in self._children.values():
                child.stop()
        return self.result

    def _warm_up(self, contender: str) -> None:
        self._on_step(f"{self._workload.name}: {contender} warms up", self.result)
        try:
            self._children[contender].wait_ready()
        except ContenderError as error:
            self._fail(contender, self._children.pop(contender), error)
        else:
            self.result.rounds[contender] = []

    def _round(self, index: int) -> None:
        names = list(self._children)
        turn = index % max(len(names), 1)
        for contender in names[turn:] + names[:turn]:
            self._on_step(
                f"{self._workload.name}: round {index + 1} of {self._settings.rounds}, {contender}", self.result
            )
            try:
                measured = self._children[contender].round(self._settings.seconds)
            except ContenderError as error:
                self._fail(contender, self._children.pop(contender), error)
            else:
                self.result.rounds[contender].append(measured)

    def _fail(self, contender: str, child: Child, error: ContenderError) -> None:
        self.result.errors[contender] = str(error)
        child.stop()
