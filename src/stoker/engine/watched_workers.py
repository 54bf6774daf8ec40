"""The backend's workers, those of which are ended that take too long."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stoker.engine.deadlines import Deadlines
from stoker.workers import Backend, Death, News, Request


class WatchedWorkers:
    """A backend, and, where there is a time limit, a watch over what its workers are at.

    Args:
        backend: Fresh.
        timeout: Seconds that a worker may take for a batch. None: nobody is watched.
    """

    def __init__(self, backend: Backend, timeout: float | None) -> None:
        self._backend = backend
        self._deadlines = Deadlines(timeout, backend.progress) if timeout is not None else None

    def start(self, worker: int) -> None:
        self._backend.start(worker)

    def send(self, worker: int, request: Request) -> None:
        """Its time begins when it has nothing else to do."""
        self._backend.send(worker, request)
        if self._deadlines is not None:
            self._deadlines.sent(worker)

    def recall(self, worker: int) -> int | None:
        """Takes back a request that it has not begun: its ticket, or None if there is none."""
        ticket = self._backend.recall(worker)
        if ticket is not None and self._deadlines is not None:
            self._deadlines.recalled(worker)
        return ticket

    def unbegun(self, worker: int) -> Iterator[int]:
        """What a dead worker had not looked at, up to what it was sent when it was dead already."""
        while (ticket := self._backend.recall(worker)) is not None:
            yield ticket

    def wait(self, timeout: float | None) -> None:
        """Until there may be news, or somebody is to be looked at, or so many seconds have passed."""
        if self._deadlines is not None:
            timeout = self._deadlines.within(timeout)
        self._backend.wait(timeout)

    def news(self) -> Sequence[News]:
        """What has come. Of each answer and death, ``answered`` or ``judged`` is to be told before anything is sent."""
        return self._backend.news()

    def answered(self, worker: int) -> None:
        """It has got on."""
        if self._deadlines is not None:
            self._deadlines.answered(worker)

    def judged(self, death: Death) -> Death:
        """The same death, which may have been for taking too long."""
        return death if self._deadlines is None else self._deadlines.judged(death)

    def end_the_overdue(self) -> None:
        if self._deadlines is not None:
            for worker, at_once in self._deadlines.overdue():
                self._backend.end(worker, at_once=at_once)

    def expect_length(self) -> None:
        """Worker 0 has to say how long the dataset is, and may take as long for that as for a batch."""
        if self._deadlines is not None:
            self._deadlines.sent(0)

    def length(self) -> int | Death | None:
        """What it says; None: nothing yet."""
        found = self._backend.length()
        if isinstance(found, int):
            self.answered(0)
        return found

    def wake(self) -> None:
        """From another thread: ``wait`` ends."""
        self._backend.wake()

    def pids(self) -> list[int]:
        return self._backend.pids()

    def close(self) -> None:
        self._backend.close()
