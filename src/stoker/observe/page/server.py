"""The server of the live page: a thread that accepts connections, and one for each that is open.

    GET /?token=...          the page
    GET /events?token=...    server-sent events: the snapshots of all loaders, a few times a second
    GET /snapshot?token=...  the snapshots of this process, once: for the pages of other processes

Whoever has no token gets 403. So does a page of the web whose name was made to lead here (DNS rebinding): a request has
to name this machine by an address, or as ``localhost``.
"""

from __future__ import annotations

import contextlib
import errno
import hmac
import ipaddress
import os
import secrets
import socket
import socketserver
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from time import monotonic
from typing import Any
from urllib.parse import parse_qs, urlsplit

from stoker.interrupts import Background, Bell
from stoker.observe.page.document import document, policy
from stoker.observe.page.gathering import Gathering
from stoker.observe.page.registry import Entry, Registration, entries
from stoker.observe.page.watch import Watch

_EVERY_S = 0.3  # between two events
_REQUEST_S = 10.0  # for a client to send a request, or to take what it is sent
_MOST_OPEN = 32  # connections
_LAST_WORDS_S = 1.0  # for a client to take them
_CLOSE_S = 5.0  # for the threads to end
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # where to connect to what listens at all addresses


class PageServer:
    """Serves the page from when it was made until ``close``.

    Args:
        watch: Where.
        gathering: What.
        is_published: Whether the pages of other processes show the loaders of this one.

    Raises:
        OSError: The port is taken, or the address is not this machine's.
    """

    def __init__(self, watch: Watch, gathering: Gathering, *, is_published: bool = True) -> None:
        self.watch = watch
        self._owner = os.getpid()
        self._token = secrets.token_urlsafe(24)
        try:
            self._listener = _Listener(watch, self._token, gathering)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            if not is_published or not _is_ours(watch.port):
                raise OSError(
                    error.errno,
                    f"port {watch.port} of {watch.host} is taken by another program; pass another one, or port=0 for "
                    f"any that is free",
                ) from error
            self._listener = _Listener(replace(watch, port=0), self._token, gathering)
        self._host, self._port = _EVERYWHERE.get(watch.host, watch.host), self._listener.server_address[1]
        self._registration: Registration | None = None
        if is_published:
            with contextlib.suppress(OSError):  # then there is just no page of others that shows it
                self._registration = Registration(Entry.of_this_process(self._host, self._port, self._token))
        self._background = Background(self._serve, "stoker-watch")
        try:
            self._background.start()
        except BaseException:  # no more threads may be made
            self._listener.server_close()
            self._forget()
            raise

    @property
    def url(self) -> str:
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}/?token={self._token}"

    def close(self) -> None:
        """May be called again, and from any thread: from one of its own, in which a collection may end a loader, it
        does not wait for the end."""
        if self._owner != os.getpid():
            return
        self._listener.end()
        if not self._listener.is_answering_here():
            self._background.join(_CLOSE_S)

    def _serve(self) -> None:
        try:
            self._listener.serve()
        finally:
            self._forget()

    def _forget(self) -> None:
        if self._registration is not None:
            self._registration.end()


def _is_ours(port: int) -> bool:
    """Whether another process that is watched has it: one that was started with the same arguments, as ranks are."""
    try:
        return any(entry.port == port for entry in entries())
    except OSError:
        return False


class _Listener(socketserver.TCPServer):
    """Accepts connections. Not ``HTTPServer``, which asks the network for the name of this machine first."""

    allow_reuse_address = True
    request_queue_size = 64

    def __init__(self, watch: Watch, token: str, gathering: Gathering) -> None:
        self.address_family = socket.AF_INET6 if ":" in watch.host else socket.AF_INET
        self.token, self.gathering, self.host = token, gathering, watch.host
        self.is_ending, self.ending = False, Bell()
        self._open: dict[threading.Thread, socket.socket] = {}
        super().__init__((watch.host, watch.port), _Handler)

    def serve(self) -> None:
        try:
            while not self.is_ending:
                self.handle_request()
        finally:
            self.server_close()
            self.ending.ring_for_all()
            self._hang_up(socket.SHUT_RD)  # who is just told something is told to the end
            self._hang_up(socket.SHUT_RDWR)

    def end(self) -> None:
        """Wakes ``serve``, which does the rest."""
        self.is_ending = True
        with contextlib.suppress(OSError):  # has ended already
            self.socket.shutdown(socket.SHUT_RDWR)

    def is_answering_here(self) -> bool:
        """Whether it is one of its own threads that asks."""
        return threading.current_thread().name.startswith("stoker-watch")

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open = {thread: connection for thread, connection in self._open.items() if thread.is_alive()}
        if len(self._open) >= _MOST_OPEN:
            self.shutdown_request(request)
            return
        answer = threading.Thread(
            target=self._answer, args=(request, client_address), name="stoker-watch-answer", daemon=True
        )
        self._open[answer] = request
        answer.start()

    def _hang_up(self, direction: int) -> None:
        for thread, connection in self._open.items():
            if thread.is_alive():
                with contextlib.suppress(OSError):  # it has ended just now
                    connection.shutdown(direction)
        deadline = monotonic() + _LAST_WORDS_S
        for thread in self._open:
            thread.join(max(deadline - monotonic(), 0.0))

    def _answer(self, request: Any, client_address: Any) -> None:
        try:
            with contextlib.suppress(OSError):  # the client has gone
                self.finish_request(request, client_address)
        finally:
            self.shutdown_request(request)


class _Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    protocol_version = "HTTP/1.1"
    timeout = _REQUEST_S
    server: _Listener

    def do_GET(self) -> None:
        self.close_connection = True
        try:
            asked, host = urlsplit(self.path), urlsplit(f"//{self.headers.get('Host', '')}").hostname or ""
        except ValueError:
            self._send(400, "text/plain", b"This is no request for this page.\n")
            return
        if not self._is_of_this_machine(host) or not self._has_token(asked.query):
            self._send(403, "text/plain", b"The URL lacks the right token: open the one that was printed.\n")
        elif asked.path == "/":
            self._send(200, "text/html; charset=utf-8", document([], live=True).encode())
        elif asked.path == "/snapshot":
            self._send(200, "application/json", self.server.gathering.of_this_process())
        elif asked.path == "/events":
            self._send_events()
        else:
            self._send(404, "text/plain", b"There is only one page here.\n")

    def log_message(self, *_: Any) -> None:
        """Nothing: the output is the user's own."""

    def version_string(self) -> str:
        return "stoker"

    def _is_of_this_machine(self, name: str) -> bool:
        if name in ("localhost", self.server.host):
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    def _has_token(self, query: str) -> bool:
        given = parse_qs(query).get("token", [""])[0]
        return hmac.compare_digest(given.encode(errors="replace"), self.server.token.encode())

    def _send(self, code: int, kind: str, body: bytes) -> None:
        self._send_head(code, kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _send_events(self) -> None:
        self._send_head(200, "text/event-stream")
        self.end_headers()
        while not self.server.is_ending:
            self.wfile.write(b"data: " + self.server.gathering.of_all() + b"\n\n")
            self.server.ending.wait(_EVERY_S)
        self.wfile.write(b"event: end\ndata: {}\n\n")  # it need not be asked for again

    def _send_head(self, code: int, kind: str) -> None:
        self.send_response(code)
        for name, value in (
            ("Content-Type", kind),
            ("Content-Security-Policy", f"{policy()}; frame-ancestors 'none'"),
            ("Cache-Control", "no-store"),
            ("Referrer-Policy", "no-referrer"),
            ("X-Content-Type-Options", "nosniff"),
            ("Connection", "close"),
        ):
            self.send_header(name, value)
