"""The board: what workers let the consumer see without being asked, and leave behind when they die.

Each worker has a region of one anonymous file: a page of numbers, which it writes as it goes on and the consumer reads
only when something seems wrong, and behind it the place where ``faulthandler`` writes its stack if it crashes. Nothing
of this costs a system call while all is well.
"""

from __future__ import annotations

import faulthandler
import os
import signal

from stoker.memory import MappedFile, allocate, anonymous_file, reopened
from stoker.memory.mapping import PAGE

_DISTANCE = 2**24  # bytes from region to region: a hundred stacks of a hundred frames fit; the file is sparse
_PID, _PLACE = 0, 1  # the numbers of the page
_STACK_BYTES = 2**16  # of a stack that anyone would want to read
# Has a worker write its stack and end. Unlike SIGABRT it leaves no core file, and nobody else uses it.
END_WITH_STACK = signal.SIGVTALRM


class Board:
    """The consumer's side: one file for all workers of a loader."""

    def __init__(self) -> None:
        self.fd = anonymous_file()
        self._pages: dict[int, memoryview] = {}

    def prepare(self, worker: int) -> None:
        """Clears the worker's region, for a worker that is about to start."""
        if worker not in self._pages:
            allocate(self.fd, worker * _DISTANCE, PAGE)
            self._pages[worker] = _numbers(self.fd, worker)
        page = self._pages[worker]
        page[_PID] = page[_PLACE] = 0
        words = len(self._stack(worker))
        os.pwrite(self.fd, bytes(words), self.place_of_stack(worker))

    def pid(self, worker: int) -> int:
        """Of its process; 0 before it is up."""
        return self._pages[worker][_PID]

    def progress(self, worker: int) -> int:
        """Where it is; see ``stoker.workers.progress``."""
        return self._pages[worker][_PLACE]

    def stack(self, worker: int) -> str:
        """What it left behind when it crashed; empty if it had no time to."""
        words = self._stack(worker).decode(errors="replace")
        return words.partition("\nExtension modules:")[0].strip()

    @staticmethod
    def place_of_stack(worker: int) -> int:
        """Where it is in the file."""
        return worker * _DISTANCE + PAGE

    def close(self) -> None:
        self._pages.clear()
        os.close(self.fd)

    def _stack(self, worker: int) -> bytes:
        return os.pread(self.fd, _STACK_BYTES, self.place_of_stack(worker)).split(b"\0", 1)[0]


def sign_in(fd: int, worker: int) -> memoryview:
    """In a worker: says that it is up, and has its stack written down if it crashes. Gives where to note progress."""
    page = _numbers(fd, worker)
    page[_PID] = os.getpid()
    try:
        stack = reopened(fd, os.O_WRONLY)  # with a position of its own
    except OSError:
        return page[_PLACE:]  # no /proc: it dies without a word
    os.lseek(stack, Board.place_of_stack(worker), os.SEEK_SET)
    faulthandler.enable(stack)
    faulthandler.register(END_WITH_STACK, stack, chain=True)
    return page[_PLACE:]


def _numbers(fd: int, worker: int) -> memoryview:
    return MappedFile(fd, PAGE, worker * _DISTANCE).buffer.cast("q")
