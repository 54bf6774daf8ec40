"""Who can be to blame when a consumer waits, and what is said about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Culprit(StrEnum):
    """Who is to blame for the wait, or what there is to say if nobody is."""

    UNKNOWN = "unknown"
    START_UP = "start-up"
    NO_WORKERS = "no workers"
    CONSUMER = "consumer"
    TOO_MANY_WORKERS = "too many workers"
    TOO_FEW_WORKERS = "too few workers"
    DATASET = "dataset"
    LATENCY = "latency"
    COLD_CACHE = "cold cache"
    COLLATE = "collate"
    SLOW_BATCHES = "slow batches"
    SLOW_SAMPLES = "slow samples"
    DEVICE_COPY = "device copy"
    CONVERSION = "conversion"
    TRANSFER = "transfer"
    HAND_OVER = "hand-over"
    THREADS_IN_WORKERS = "threads in workers"
    INTERPRETER_LOCK = "interpreter lock"
    STARVED_CONSUMER = "starved consumer"
    SLOW_RANK = "slow rank"


@dataclass(frozen=True)
class WhatIf:
    """What a change would bring.

    Attributes:
        change: The argument to pass, as in "workers=3".
        wait: The share of its time, from 0 to 1, that the consumer would then wait.
    """

    change: str
    wait: float


@dataclass(frozen=True)
class Finding:
    """What a rule has to say. ``cause`` is a sentence without its stop, and ``remedy`` a clause that can follow it."""

    culprit: Culprit
    cause: str
    remedy: str = ""
    station: str = ""
    what_if: tuple[WhatIf, ...] = ()
