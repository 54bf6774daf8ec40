"""What goes through the pipes: records of one size, written and read whole.

A request goes into the worker's own pipe; answers, and the news of a death, into one pipe that all workers of a loader
share. A write of up to 4 KB to a pipe is atomic, so records never mix, and what a worker said before it died is
read before the news of its death. All that has no fixed size (arrays, objects, errors) lies in the slot.
"""

from __future__ import annotations

import struct
from enum import IntEnum

from stoker.memory import Packed
from stoker.plan import Batch
from stoker.workers.backend import Done, Request, Timing

_REQUEST = struct.Struct("<9q")
_ANSWER = struct.Struct("<13q")

REQUEST_BYTES = _REQUEST.size
ANSWER_BYTES = _ANSWER.size


class Ask(IntEnum):
    """Kinds of request."""

    BATCH = 0
    LENGTH = 1
    STOP = 2


class Say(IntEnum):
    """Kinds of answer. ``DIED`` is written by whoever started the worker."""

    DONE = 0
    FAILED = 1
    LENGTH = 2
    DIED = 3


def pack_request(request: Request, kind: Ask = Ask.BATCH) -> bytes:
    batch = request.batch
    return _REQUEST.pack(
        kind,
        request.ticket,
        request.slot,
        request.capacity,
        request.length,
        batch.epoch,
        batch.start,
        batch.stop,
        batch.round,
    )


def unpack_request(record: bytes) -> tuple[Ask, Request]:
    kind, ticket, slot, capacity, length, *batch = _REQUEST.unpack(record)
    return Ask(kind), Request(ticket, Batch(*batch), length, slot, capacity)


def pack_done(done: Done) -> bytes:
    packed, timing = done.packed, done.timing
    return _ANSWER.pack(
        Say.DONE,
        done.worker,
        done.ticket,
        done.slot,
        packed.capacity,
        packed.nbytes,
        packed.layout_bytes,
        packed.aside_bytes,
        done.samples,
        done.skipped,
        timing.idle,
        timing.fetch,
        timing.write,
    )


def pack_said(kind: Say, worker: int, ticket: int = 0, slot: int = 0, capacity: int = 0, value: int = 0) -> bytes:
    """Any other answer. ``value`` is the error's size in the slot, the dataset's length, or the exit status."""
    return _ANSWER.pack(kind, worker, ticket, slot, capacity, value, 0, 0, 0, 0, 0, 0, 0)


def unpack_answers(data: bytes) -> list[tuple[int, ...]]:
    return list(_ANSWER.iter_unpack(data))


def done_from(fields: tuple[int, ...]) -> Done:
    _, worker, ticket, slot, capacity, nbytes, layout, aside, samples, skipped, idle, fetch, write = fields
    packed = Packed(capacity, nbytes, layout, aside)
    return Done(worker, ticket, slot, packed, samples, skipped, Timing(idle, fetch, write))
