"""Watching: this process's own page, served from the first loader that asks for it to the last one's end."""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

from stoker.interrupts import put_off
from stoker.observe.page.gathering import Gathering
from stoker.observe.page.observed import Observed
from stoker.observe.page.server import PageServer
from stoker.observe.page.watch import Watch


class Watching:
    """A place on the page, from the first ``show`` to ``end``.

    Args:
        watch: Where. A page that is served already, because of another loader, stays where it is.
    """

    _lock = threading.RLock()  # a collection may end a loader in the middle of another's beginning
    _server: PageServer | None = None
    _shown: dict[str, Observed] = {}  # noqa: RUF012  # those of this process
    _process = 0  # whose they are: a fork has the page of its parent, without its threads

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._owner, self._key = 0, ""
        self.url: str | None = None

    def show(self, observed: Observed) -> None:
        """That from now on. What takes the place of another has its key, so that a page takes it for the same.

        Raises:
            OSError: The page cannot be served there.
            ValueError: It is served elsewhere already.
        """
        with put_off(), Watching._lock:
            if Watching._process != os.getpid():
                Watching._server, Watching._shown, Watching._process = None, {}, os.getpid()
            if self._owner == os.getpid():
                observed.key = self._key
            self._owner, self._key = os.getpid(), observed.key
            is_new = self._key not in Watching._shown
            Watching._shown[self._key] = observed  # first, so that nobody ends the page meanwhile
            if not is_new:
                return
            try:
                self.url = self._served().url
            except BaseException:
                del Watching._shown[self._key]
                raise

    def end(self) -> None:
        """Takes it off the page; with the last one, the page ends. May be called again."""
        if self._owner != os.getpid():
            return
        with put_off():
            with Watching._lock:
                if Watching._shown.pop(self._key, None) is None or Watching._shown:
                    return
                server, Watching._server = Watching._server, None
            if server is not None:
                server.close()

    def _served(self) -> PageServer:
        server = Watching._server
        if server is None:
            server = Watching._server = PageServer(self._watch, Gathering(_shown))
            print(f"stoker: watch the loaders of this machine at {server.url}", file=sys.stderr, flush=True)
        elif self._watch not in (server.watch, Watch()):
            raise ValueError(
                f"{self._watch!r}: this process serves its page at {server.watch!r} already; "
                f"pass that to all loaders, or watch=True to all but the first"
            )
        return server


def _shown() -> list[dict[str, Any]]:
    return [observed.live() for observed in list(Watching._shown.values())]
