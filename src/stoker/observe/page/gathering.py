"""Snapshots of all loaders to be shown: of this process, and of others on this machine that serve a page."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException
from time import monotonic
from typing import Any

import msgspec

from stoker.observe.page.registry import Entry, entries

Snapshots = list[dict[str, Any]]

_FRESH_S = 0.2  # what is not older than that is shown to the next who asks, too
_ANSWER_S = 0.5  # for another process to answer
_LEFT_ALONE_S = 3.0  # one that has not, so that the others are not held up


class Gathering:
    """Asks everybody for their snapshots, but only when somebody wants to see them.

    Args:
        own: Gives those of this process.
    """

    def __init__(self, own: Callable[[], Snapshots]) -> None:
        self._own = own
        self._lock = threading.Lock()  # among the server's own threads
        self._latest, self._gathered = b"[]", 0.0
        self._last: dict[Entry, Snapshots] = {}
        self._silent: dict[Entry, float] = {}  # since when

    def of_this_process(self) -> bytes:
        """As JSON."""
        return msgspec.json.encode(self._own())

    def of_all(self) -> bytes:
        """As JSON, in one line."""
        with self._lock:
            if monotonic() - self._gathered > _FRESH_S:
                found = [*self._own(), *self._of_others()]
                self._latest, self._gathered = msgspec.json.encode(found), monotonic()
            return self._latest

    def _of_others(self) -> Snapshots:
        try:
            others = [entry for entry in entries() if entry.pid != os.getpid()]
        except OSError:
            return []
        self._last = {entry: told for entry, told in self._last.items() if entry in others}
        self._silent = {entry: since for entry, since in self._silent.items() if entry in others}
        return [snapshot for entry in others for snapshot in self._of(entry)]

    def _of(self, entry: Entry) -> Snapshots:
        if monotonic() - self._silent.get(entry, -_LEFT_ALONE_S) >= _LEFT_ALONE_S:
            try:
                self._last[entry] = asked(entry)
                self._silent.pop(entry, None)
            except (OSError, HTTPException, ValueError):
                self._silent[entry] = monotonic()
        last = self._last.get(entry, [])
        return [one | {"phase": "not answering"} for one in last] if entry in self._silent else last


def asked(entry: Entry) -> Snapshots:
    """What another process tells of its loaders.

    Raises:
        OSError, HTTPException, ValueError: It does not answer, or something else does.
    """
    connection = HTTPConnection(entry.host, entry.port, timeout=_ANSWER_S)
    try:
        connection.request("GET", f"/snapshot?token={entry.token}")
        response = connection.getresponse()
        told = msgspec.json.decode(response.read()) if response.status == 200 else None
    finally:
        connection.close()
    if not isinstance(told, list):
        raise ValueError(f"process {entry.pid} answered {response.status}")
    return told
