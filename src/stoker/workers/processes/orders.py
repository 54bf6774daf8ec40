"""What the consumer tells its nursery: a message each, with the descriptors that go with it."""

from __future__ import annotations

import pickle
import socket
from collections.abc import Sequence
from dataclasses import dataclass

from stoker.memory import Segment
from stoker.workers.processes.service import Ends

_MESSAGE_BYTES = 2**15  # longer ones (a path of thousands of folders) lie in a segment: a socket takes no more at once
_DESCRIPTORS = len(Ends._fields) + 3  # a worker's ends, the job's two segments, and that of a long message


@dataclass(frozen=True)
class Launch:
    """Fork a worker; its descriptors come with the message."""

    key: int
    worker: int
    modules: tuple[str, ...]
    path: list[str]


@dataclass(frozen=True)
class Kill:
    """Send a signal to a worker, if it is still there."""

    key: int
    number: int


def send_order(control: socket.socket, order: Launch | Kill, fds: Sequence[int]) -> None:
    message = pickle.dumps(order)
    if len(message) <= _MESSAGE_BYTES:
        socket.send_fds(control, [message], fds)
        return
    segment = Segment.write([memoryview(message)])
    try:
        socket.send_fds(control, [_IN_SEGMENT], [*fds, segment.fd])
    finally:
        segment.close()


def receive_order(control: socket.socket) -> tuple[Launch | Kill, list[int]] | None:
    """An order and its descriptors; None when there will be no more."""
    try:
        message, fds, _, _ = socket.recv_fds(control, _MESSAGE_BYTES, _DESCRIPTORS)
    except ConnectionResetError:
        return None
    if not message:
        return None
    if message != _IN_SEGMENT:
        return pickle.loads(message), fds
    *fds, last = fds
    segment = Segment(last)
    try:
        return pickle.loads(segment.read()[0]), fds
    finally:
        segment.close()


_IN_SEGMENT = b"in the segment"
