"""What goes through the pipes: records of one size, written and read whole.

A request goes into the worker's own pipe; answers, and the news of a death, into one pipe that all workers of a loader
share. A write of up to 512 bytes to a pipe is atomic, so records never mix, and what a worker said before it died is
read before the news of its death. All that has no fixed size lies in the slot: before the work, the places to leave
out, or the item to work on; after it the batches of the run, errors, and behind them the table of results, one entry a
batch.
"""

from __future__ import annotations

import json
import pickle
import struct
from array import array
from enum import IntEnum
from typing import Any, NamedTuple

from stoker.errors import ShippingError
from stoker.memory import Packed, Slot
from stoker.memory.codec import dumps
from stoker.plan import Run
from stoker.sources import SlowSamples
from stoker.workers.backend import Answer, Failed, Made, Request, Skipped, Timing
from stoker.workers.failure import pack_error, unpack_error

_REQUEST = struct.Struct("<10q")
_SAID = struct.Struct("<7q")
_RESULT = struct.Struct("<13q")

_Told = tuple[tuple[Skipped, ...], tuple[str, ...], int, SlowSamples | None]  # of a batch, where there is any of it

_NO_TIMING = Timing(0, 0, 0, 0, 0)
_PROGRAM = b"__main__"  # in the pickle of what has its class there
_NOTHING_TOLD: _Told = ((), (), 0, None)
_new = tuple.__new__  # of a NamedTuple, without a frame of Python's: here it is made for each batch

REQUEST_BYTES = _REQUEST.size
SAID_BYTES = _SAID.size


class Ask(IntEnum):
    """Kinds of request."""

    RUN = 0
    LENGTH = 1
    STOP = 2
    ITEM = 3


class Say(IntEnum):
    """Kinds of answer. ``DIED`` is written by whoever started the worker, ``NOT_STARTED`` by whoever could not.

    ``NOTHING`` is written by another thread of the consumer, to be woken.
    """

    DONE = 0
    LENGTH = 1
    DIED = 2
    NOT_STARTED = 3
    NOTHING = 4


class Said(NamedTuple):
    """An answer on the wire. ``value``: where the table of results begins, the dataset's length, the exit
    code, or the number of the error.

    Of a death, ``capacity`` is the most memory that the worker had.
    """

    kind: int
    worker: int
    ticket: int = 0
    slot: int = 0
    capacity: int = 0
    value: int = 0
    results: int = 0

    def pack(self) -> bytes:
        return _SAID.pack(*self)

    @property
    def end(self) -> int:
        """Of a run that is done: bytes of the slot that its results take."""
        return self.value + self.results * _RESULT.size


def pack_request(request: Request, kind: Ask = Ask.RUN, capacity: int = 0, in_slot: int = 0) -> bytes:
    """``capacity``: bytes that the slot has. ``in_slot``: how many places to leave out, or bytes of the item, lie in
    it."""
    ticket, run, length, slot, *_ = request
    return _REQUEST.pack(kind, ticket, slot, capacity, length, *run[:4], in_slot)


def unpack_request(record: bytes) -> tuple[Ask, Request, int, int]:
    """Kind, request, ``capacity`` and ``in_slot``."""
    kind, ticket, slot, capacity, length, epoch, start, stride, size, in_slot = _REQUEST.unpack(record)
    return Ask(kind), Request(ticket, Run(epoch, start, stride, size), length, slot), capacity, in_slot


def write_left_out(places: tuple[int, ...], slot: Slot) -> None:
    told = array("q", places).tobytes()
    slot.reserve(len(told)).buffer[: len(told)] = told


def read_left_out(count: int, slot: Slot) -> tuple[int, ...]:
    return tuple(array("q", slot.view().buffer[: 8 * count].tobytes()))


def pack_item(item: Any, *, shares_program: bool = False) -> bytes:
    """Pickled; by value if its class is of the program that is run, unless workers are forked, and so share that."""
    try:
        packed = dumps(item)
        return packed if shares_program or _PROGRAM not in packed else _by_value(item)
    except Exception as error:
        raise ShippingError(
            f"an item, a {type(item).__name__}, cannot be pickled, so it cannot be sent to workers: "
            f"{type(error).__name__}: {error}. Let the items be names or numbers, and open things in the work; or use "
            f"workers=stoker.Threads(n)"
        ) from error


def _by_value(item: Any) -> bytes:
    import cloudpickle  # seldom needed, and slow to import

    packed: bytes = cloudpickle.dumps(item)
    return packed


def write_item(request: Request, slot: Slot, *, shares_program: bool) -> int:
    """With what is left out. Gives the length of both."""
    told = array("q", [*request.left_out, len(request.left_out)]).tobytes()
    return _append(slot, 0, pack_item(request.item, shares_program=shares_program) + told)


def read_item(request: Request, nbytes: int, slot: Slot) -> Request:
    """The request with its item."""
    told = slot.view().buffer[:nbytes].tobytes()
    (count,) = array("q", told[-8:])
    end = nbytes - 8 * (count + 1)
    return request._replace(item=pickle.loads(told[:end]), left_out=tuple(array("q", told[end:-8])))


def unpack_said(records: bytes) -> list[Said]:
    return [Said._make(fields) for fields in _SAID.iter_unpack(records)]


def write_results(answer: Answer, slot: Slot) -> Said:
    """Puts errors and the table of results into the slot, behind the batches."""
    end = max((result.packed.end for result in answer.results if isinstance(result, Made)), default=0)
    table = []
    for result in answer.results:
        if isinstance(result, Failed):
            error = pack_error(result.error)
            table.append(_RESULT.pack(end, len(error), 0, 0, -1, 0, 0, *_NO_TIMING[:4], 0, 0))
            end = _append(slot, end, error)
        else:
            packed, samples, skipped, notes, timing, calls, cpu, *others = result
            told = json.dumps([skipped, notes, *others]).encode() if skipped or notes or any(others) else b""
            table.append(_RESULT.pack(*packed[:4], samples, end, len(told), *timing[:4], calls, cpu))
            end = _append(slot, end, told) if told else end
    _append(slot, end, b"".join(table))
    return Said(Say.DONE, answer.worker, answer.ticket, answer.slot, slot.capacity, end, len(answer.results))


def read_results(said: Said, slot: Slot) -> Answer:
    buffer = slot.view().buffer
    results: list[Made | Failed] = []
    for fields in _RESULT.iter_unpack(buffer[said.value : said.value + said.results * _RESULT.size]):
        offset, nbytes, layout, aside, samples, told, told_bytes, free, began, fetched, written, calls, cpu = fields
        if samples < 0:
            results.append(Failed(unpack_error(buffer[offset : offset + nbytes])))
        else:
            skipped, notes, *others = _read_told(buffer[told : told + told_bytes]) if told_bytes else _NOTHING_TOLD
            packed = _new(Packed, (offset, nbytes, layout, aside, None))
            timing = _new(Timing, (free, began, fetched, written, written))
            results.append(_new(Made, (packed, samples, skipped, notes, timing, calls, cpu, *others)))
    return Answer(said.worker, said.ticket, said.slot, results)


def _append(slot: Slot, end: int, content: bytes) -> int:
    """Writes behind what is in the slot; gives the new end."""
    slot.reserve(end + len(content)).buffer[end : end + len(content)] = content
    return end + len(content)


def _read_told(told: memoryview) -> _Told:
    skipped, notes, retries, slow = json.loads(told.tobytes())
    return tuple(Skipped(*fields) for fields in skipped), tuple(notes), retries, slow and SlowSamples(*slow)
