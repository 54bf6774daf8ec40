"""The parent's side of a child: starts it, lets it go, hears what it did."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from benchmarks.stores.kinds import Kind, Share
from benchmarks.stores.store import Store

_SILENT_S = 120.0  # the slowest child takes a fifth of it


class ChildError(Exception):
    """A child that could not do what it was for; the message is one line."""


class Child:
    """Ready, with its store open, when this returns."""

    def __init__(self, role: str, store: Store, kind: Kind, directory: Path, share: Share, tell: bool = False) -> None:
        places = [str(directory), *map(str, (share.part, share.parts, share.batches))]
        command = [sys.executable, "-m", "benchmarks.stores.child", role, store.name, kind.name, *places]
        self._process = subprocess.Popen(
            [*command, *["--tell"] * tell], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._watch = threading.Timer(_SILENT_S, self._process.kill)
        self._watch.start()
        try:
            self.open_s: float = 0.0 if role == "write" else self._hear("opened")
            self._hear("ready")
        except ChildError:
            self.kill()
            raise

    def say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def told(self) -> int:
        return int(self._hear("told"))

    def done(self) -> dict[str, Any]:
        """What it did; it has ended when this returns."""
        try:
            result: dict[str, Any] = self._hear("done")
            return result
        finally:
            self._end()

    def kill(self) -> list[dict[str, Any]]:
        """SIGKILL; returns what it had still said. Nothing happens to one that has ended."""
        assert self._process.stdout is not None
        if self._process.stdout.closed:
            return []
        self._process.kill()
        rest = [json.loads(line) for line in self._process.stdout if line.endswith("\n")]
        self._end()
        return rest

    def _hear(self, name: str) -> Any:
        assert self._process.stdout is not None
        while line := self._process.stdout.readline():
            message = json.loads(line)
            if "error" in message:
                raise ChildError(message["error"])
            if name in message:
                return message[name]
        raise ChildError(f"it ended before it was {name}")

    def _end(self) -> None:
        self._watch.cancel()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        self._process.wait()
