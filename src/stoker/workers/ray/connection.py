"""This process's connection to a Ray cluster: one for all loaders, ended with the last of them if we opened it."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import socket
import threading
from collections.abc import Mapping
from typing import Any, NamedTuple

from stoker.errors import StartError

_REACHED_S = 5.0  # by then somebody has answered at an address, or nobody will
_FRAME_BYTES, _SETTINGS = 9, b"\4"  # of HTTP/2, which Ray speaks: the head of a frame, in which this is its kind
_GREETING = (
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + _SETTINGS + bytes(5)
)  # which is answered in kind, and at once
_WORKERS = 1000  # that find a place on a cluster that is started here, whichever loaders they are of
_CLIENT = "ray://"  # addresses of Ray's client begin so
_LOCK = threading.RLock()  # a loader may be garbage collected, and closed, while another one is opened


def _ray() -> Any:
    import ray  # when it is used: it takes seconds to import

    return ray


def _found(address: str) -> str:
    """Where "auto" is, if Ray says so: it may be noted of a cluster that is no more."""
    if address == "auto":
        with contextlib.suppress(Exception):  # no part of Ray's interface
            return _ray()._private.services.get_ray_address_from_environment(address, None) or address
    return address


def _check_reachable(address: str, seconds: float) -> None:
    """Raises OSError if nobody is there, or it is not Ray: Ray itself would try for minutes."""
    host, _, port = address.removeprefix(_CLIENT).partition("/")[0].rpartition(":")
    if not (host and port.isdecimal()):
        return
    with socket.create_connection((host.strip("[]"), int(port)), timeout=_REACHED_S) as there:
        there.settimeout(max(seconds, _REACHED_S))
        there.sendall(_GREETING)
        try:
            answer = there.recv(_FRAME_BYTES)
        except TimeoutError:
            raise TimeoutError(f"somebody listens there, and has not answered for {there.gettimeout():g} s") from None
        if answer[3:4] != _SETTINGS and os.environ.get("RAY_USE_TLS", "0") in ("", "0"):
            raise ConnectionError("somebody listens there, but it is not Ray")


def _is_same(address: str, connected: str) -> bool:
    """Whether it is where this process is connected to: Ray gives the number of a host, and never a loopback's."""
    (host, _, port), (wanted, _, at) = address.rpartition(":"), connected.rpartition(":")
    with contextlib.suppress(OSError):
        host = socket.gethostbyname(host)
    return port == at and (host == wanted or host.startswith("127."))


class Session(NamedTuple):
    """One connection of one process, which may open another one after it: what lies in one is not to be had in that."""

    process: int
    cluster: str
    job: str

    @classmethod
    def here(cls) -> Session | None:
        """The one that this process has, if any, whoever has opened it."""
        ray = _ray()
        if not ray.is_initialized():
            return None
        context = ray.get_runtime_context()
        return cls(os.getpid(), context.gcs_address, context.get_job_id())


_OURS: dict[Session, int] = {}  # those that were opened here, and how many loaders use each


class Connection:
    """Opened when first needed. A connection that the user has opened is used, and never closed.

    Args:
        address: "auto": the cluster of this machine or of RAY_ADDRESS; "local": one that is started here; or another.
        needs: What one worker needs of a cluster that is started here: it gets enough for a great many.
        start_timeout: Seconds for somebody there to answer.
    """

    def __init__(self, address: str, needs: Mapping[str, float], start_timeout: float) -> None:
        self._address, self._needs, self._start_timeout = address, needs, start_timeout
        self._session: Session | None = None

    def open(self) -> Session:
        """Anew if the user has ended the one that there was."""
        with _LOCK:
            session = Session.here()
            if session is None:
                self._connect()
                session = Session.here()
                assert session is not None
                _OURS[session] = 0
            elif session != self._session:
                self._check_same()
            if session != self._session and session in _OURS:
                _OURS[session] += 1
            self._session = session
            return session

    def close(self) -> None:
        with _LOCK:
            session, self._session = self._session, None
            if session is None or session not in _OURS:
                return
            _OURS[session] -= 1
            if not _OURS[session]:
                del _OURS[session]
                with contextlib.suppress(Exception):  # the cluster is gone, and this process not even connected
                    if Session.here() == session:  # else the user has ended it, and may have another one
                        _ray().shutdown()

    def _connect(self) -> None:
        ray, more = _ray(), dict[str, Any]()
        if self._address == "local":
            resources = {name: math.ceil(_WORKERS * count) for name, count in self._needs.items()}
            more = {"num_cpus": resources.pop("CPU"), "resources": resources, "include_dashboard": False}
        try:
            address = _found(self._address)
            _check_reachable(address, self._start_timeout)
            ray.init(address=address, logging_level=logging.WARNING, **more)
        except Exception as error:
            raise StartError(
                f"stoker.Ray(address={self._address!r}): no Ray cluster could be reached: {type(error).__name__}: "
                f"{error}. Start one with 'ray start --head' and pass its address, or pass address=\"local\" to start "
                f"one on this machine"
            ) from error

    def _check_same(self) -> None:
        if self._address in ("auto", "local"):
            return
        connected = _where_connected(over_client=self._address.startswith(_CLIENT))
        if connected and not _is_same(self._address.removeprefix(_CLIENT).partition("/")[0], connected):
            raise StartError(
                f"stoker.Ray(address={self._address!r}): this process is connected to the Ray cluster at {connected} "
                f'already, and Ray allows one. Pass address="auto" to use that one, or call ray.shutdown() first'
            )


def _where_connected(*, over_client: bool) -> str:
    """The address; nothing where it cannot be told: a process that is connected itself needs no client."""
    ray = _ray()
    if not over_client:
        return str(ray.get_runtime_context().gcs_address)
    with contextlib.suppress(Exception):  # no part of Ray's interface
        client = ray.util.client.ray
        return str(client.worker._conn_str) if client.is_connected() else ""
    return ""
