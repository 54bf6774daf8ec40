"""What loaders and streams have in common: what they tell about their work, and the ``with`` statement."""

from __future__ import annotations

import os
from typing import Self

from stoker.observe import Stats, Trace
from stoker.session import Session


class Front:
    """The part of a session's public face that does not depend on what the session works on."""

    _session: Session

    @property
    def worker_pids(self) -> list[int]:
        """The ids of the running worker processes, for a profiler or debugger. Empty before the start."""
        return self._session.pids()

    def stats(self) -> Stats:
        """Counts and times since the start, and a sentence that says who waited for whom: ``stats().diagnosis``.

        An item of a stream counts as a batch of one sample.
        """
        return self._session.stats()

    def report(self, path: str | os.PathLike[str] | None = None) -> None:
        """Says where the time went: the sentence of ``stats().diagnosis``, then tables of stations and workers.

        Args:
            path: An HTML file to write, with pictures, which needs no network to be looked at. None: print it.

        Raises:
            OSError: The file cannot be written.
        """
        self._session.showing.observed.report(path)

    @property
    def watch_url(self) -> str | None:
        """Where the live page is: from the first loop of a loader on, or the beginning of a stream. Without ``watch``,
        None."""
        return self._session.showing.watch_url

    def trace(self, to: str | os.PathLike[str] | Trace) -> Trace:
        """Writes a trace of the last 4096 batches for Perfetto; in a ``with`` statement, one of all within the block.

        Args:
            to: The file to write; ``.gz`` is compressed. Or a ``Trace`` of several loaders, written at the block's end.

        Raises:
            OSError: The file cannot be written.
            ValueError: Nothing is measured: observe=False.

        Example:
            >>> import os, tempfile, numpy as np, stoker
            >>> with tempfile.TemporaryDirectory() as folder, stoker.Loader(np.arange(100), 10) as loader:
            ...     with loader.trace(path := os.path.join(folder, "trace.json")):
            ...         batches = list(loader)
            ...     os.path.exists(path)
            True
        """
        return self._session.showing.trace(to)

    def close(self) -> None:
        """Stops the workers and frees all memory except for what you still hold. May be called twice."""
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
