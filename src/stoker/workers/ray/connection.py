"""This process's connection to a Ray cluster: one for all loaders, ended with the last of them if we opened it."""

from __future__ import annotations

import logging
import os
import socket
import threading
from typing import Any

from stoker.errors import StartError

_REACHED_S = 5.0  # by then somebody has answered at an address, or nobody will
_LOCK = threading.Lock()
_OPENED = {"users": 0}  # connections of ours that are in use: a process has one at most


def _ray() -> Any:
    import ray  # when it is used: it takes seconds to import

    return ray


def _check_reachable(address: str) -> None:
    """Raises OSError if nobody is there: Ray itself would try for minutes."""
    if address == "auto":
        address = os.environ.get("RAY_ADDRESS", "")
    host, _, port = address.removeprefix("ray://").partition("/")[0].rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=_REACHED_S).close()


class Connection:
    """Opened when first needed. A connection that the user has opened is used, and never closed.

    Args:
        address: "auto": the cluster of this machine or of RAY_ADDRESS; "local": one that is started here; or another.
        cpus: That the workers need in all; a cluster that is started here gets at least as many.
    """

    def __init__(self, address: str, cpus: float) -> None:
        self._address, self._cpus = address, cpus
        self._counts = self._opened = False
        self._process = 0

    def open(self) -> None:
        if self._opened and self._process == os.getpid():
            return
        with _LOCK:
            if _ray().is_initialized():
                self._check_same()
                self._counts = _OPENED["users"] > 0
            else:
                _OPENED["users"] = 0  # the user has ended what there was
                self._connect()
                self._counts = True
            _OPENED["users"] += self._counts
            self._opened, self._process = True, os.getpid()

    def close(self) -> None:
        if not self._opened or self._process != os.getpid():
            return
        self._opened = False
        with _LOCK:
            if not self._counts:
                return
            _OPENED["users"] -= 1
            if not _OPENED["users"] and _ray().is_initialized():
                _ray().shutdown()

    def _connect(self) -> None:
        ray, more = _ray(), dict[str, Any]()
        if self._address == "local":
            cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
            more = {"num_cpus": max(cores, -int(-self._cpus // 1)), "include_dashboard": False}
        try:
            _check_reachable(self._address)
            ray.init(address=self._address, logging_level=logging.WARNING, **more)
        except Exception as error:
            raise StartError(
                f"stoker.Ray(address={self._address!r}): no Ray cluster could be reached: {type(error).__name__}: "
                f"{error}. Start one with 'ray start --head' and pass its address, or pass address=\"local\" to start "
                f"one on this machine"
            ) from error

    def _check_same(self) -> None:
        if self._address in ("auto", "local") or self._address.startswith("ray://"):
            return
        connected = _ray().get_runtime_context().gcs_address
        if connected != self._address:
            raise StartError(
                f"stoker.Ray(address={self._address!r}): this process is connected to the Ray cluster at {connected} "
                f'already, and Ray allows one. Pass address="auto" to use that one, or call ray.shutdown() first'
            )
