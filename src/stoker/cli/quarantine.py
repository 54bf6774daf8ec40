"""Reading a quarantine file: JSON lines, as ``observe/failures.py`` writes them. All of it is data; nothing is run."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

_KILLED = "WorkerDied"  # how the error of a sample begins that has killed its worker, or made it hang


class CannotReplay(Exception):
    """What was asked for cannot be done. The message says what to pass instead."""


@dataclass(frozen=True)
class QuarantinedSample:
    """A sample that was left out."""

    index: int
    epoch: int
    error: str
    traceback: str
    seed: int
    dataset: dict[str, Any]

    @property
    def killed_its_worker(self) -> bool:
        return self.error.startswith(_KILLED)

    @property
    def dataset_key(self) -> str:
        """The same for all records of one dataset."""
        return json.dumps(self.dataset, sort_keys=True)


def read(path: str) -> list[QuarantinedSample]:
    """The latest record of each sample, in the order in which they first failed.

    Raises:
        CannotReplay: There is no such file, or a line of it is damaged.
    """
    latest: dict[tuple[str, int], QuarantinedSample] = {}
    for record in _records(path):
        sample = record.dataset_key, record.index
        if sample not in latest or record.epoch >= latest[sample].epoch:
            latest[sample] = record
    return list(latest.values())


def _records(path: str) -> Iterator[QuarantinedSample]:
    whole = 0  # lines that were fine
    try:
        with open(path, "rb") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield _record(line, where=f"{path}, line {number}", first=not whole)
                    whole += 1
    except OSError as error:
        told = f"cannot read {path}: {os.strerror(error.errno or 0)}"
        raise CannotReplay(f'{told}. A Loader with on_error="quarantine" writes such files') from error


def _record(line: bytes, where: str, first: bool) -> QuarantinedSample:
    try:
        return _parsed(line, where)
    except (ValueError, RecursionError) as error:
        why = f"{error.msg}, at column {error.colno}" if isinstance(error, json.JSONDecodeError) else str(error)
        remedy = "Is this a quarantine file?" if first else "Remove that line to replay the others"
        raise CannotReplay(f"{where} is damaged: {why}. {remedy}") from error


def _parsed(line: bytes, where: str) -> QuarantinedSample:
    found = json.loads(line.decode())
    if not isinstance(found, dict):
        raise ValueError("it is no JSON object")
    if found.get("what") in _WITHOUT_INDEX:
        what, error = _WITHOUT_INDEX[found["what"]], found.get("error")
        raise CannotReplay(
            f"{where} tells of {what} and not of a sample with an index ({error}), so replay cannot make it again: do "
            f"that in a program of your own"
        )
    for name, is_sound in _SOUND.items():
        if name not in found or not is_sound(found[name]):
            raise ValueError(f"its {name!r} is wrong" if name in found else f"it has no {name!r}")
    return QuarantinedSample(**{name: found[name] for name in _SOUND})


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**64


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_reference(dataset: Any) -> bool:
    """As ``IndexedSource.reference`` gives it."""
    match dataset:
        case {"make": str(), "args": list(), "kwargs": dict(), **others}:
            names: Any = others.get("redacted", [])
            return isinstance(names, list) and all(isinstance(name, str) for name in names)
        case {"type": str()}:
            return True
    return False


_WITHOUT_INDEX = {"item": "an item of a stream", "file": "a file of Chunks"}

_SOUND: dict[str, Callable[[Any], bool]] = {
    "index": _is_count,
    "epoch": _is_count,
    "error": _is_text,
    "traceback": _is_text,
    "seed": _is_count,
    "dataset": _is_reference,
}
