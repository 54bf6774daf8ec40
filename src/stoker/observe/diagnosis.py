"""The diagnosis: what was running while the consumer waited, and what to change about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stoker.observe.culprits import Culprit, WhatIf
from stoker.observe.evidence import Evidence
from stoker.observe.forecast import SMALL_SHARE
from stoker.observe.rules import RULES, percent
from stoker.workers.options import usable_cores

if TYPE_CHECKING:
    from stoker.observe.stats import Stats

_MOST = 0.5  # of the time: a start-up that took more than this is all that there is to tell,
_BRIEF_S = 0.5  # if what follows is too short to tell who waits for whom
_TOO_BRIEF_S = 0.05  # batches that were all there when training began tell nothing in so short a time


@dataclass(frozen=True)
class Diagnosis:
    """Where the time went.

    Attributes:
        culprit: What held the consumer up; "consumer" if it was kept fed.
        sentence: All that there is to say, in a sentence or two.
        remedy: The part of it that says what to change; empty if there is nothing.
        station: The station to look at, by its name in ``Stats.stations``; empty if it is none of them.
        wait: The share of its time, from 0 to 1, that the consumer waited, once workers were up.
        what_if: Changes, and what they would bring.
        rank: The rank that lags, where several were compared.
    """

    culprit: Culprit
    sentence: str
    remedy: str = ""
    station: str = ""
    wait: float = 0.0
    what_if: tuple[WhatIf, ...] = ()
    rank: int | None = None


def diagnose(stats: Stats) -> Diagnosis:
    """Says what held the consumer up, and what to change. Takes some milliseconds."""
    if not stats.batches or not stats.elapsed:
        return Diagnosis(Culprit.UNKNOWN, "Nothing was delivered yet.")
    if not stats.stations or not stats.stations["wait"].spent.count:
        return _without_stations(stats)
    if stats.workers and stats.starting > _MOST * stats.elapsed and stats.elapsed - stats.starting < _BRIEF_S:
        remedy = "warm_up() starts the workers earlier"
        return Diagnosis(
            Culprit.START_UP,
            f"Most of the time was start-up, {stats.starting:.2g} of {stats.elapsed:.2g} s: workers, imports and "
            f"the dataset. A longer run tells who waits for whom; {remedy}.",
            remedy,
        )
    evidence = Evidence(stats)
    if evidence.run < _TOO_BRIEF_S and stats.batches <= stats.workers * stats.setup.prefetch and evidence.wait:
        return Diagnosis(
            Culprit.UNKNOWN,
            f"Too few batches to tell who waits for whom, as all may have been made ahead: {stats.batches} in "
            f"{1000 * evidence.run:.2g} ms.",
            wait=evidence.wait,
        )
    finding = next(found for rule in RULES if (found := rule(evidence)) is not None)
    rest = [finding.cause, *([finding.remedy] if finding.remedy else []), *_never_used(evidence)]
    start_up = f" Start-up took {stats.starting:.2g} s more." if stats.starting > SMALL_SHARE * stats.elapsed else ""
    sentence = f"{'; '.join(rest)}.{start_up}"
    return Diagnosis(finding.culprit, sentence, finding.remedy, finding.station, evidence.wait, finding.what_if)


def _without_stations(stats: Stats) -> Diagnosis:
    """All that is known is how long the consumer made batches itself, or not even that."""
    if stats.workers or not stats.waiting:
        return Diagnosis(Culprit.UNKNOWN, "Nothing was measured: observe=False.")
    wait = min(stats.waiting / stats.elapsed, 1.0)
    alone = f"made its batches itself, {percent(wait)} of the time"
    if wait < SMALL_SHARE:
        return Diagnosis(Culprit.CONSUMER, f"Training {alone}.", wait=wait)
    remedy = f"pass {stats.setup.workers_argument}={min(usable_cores(), 4)}"
    return Diagnosis(Culprit.NO_WORKERS, f"There are no workers: training {alone}; {remedy}.", remedy, wait=wait)


def _never_used(e: Evidence) -> list[str]:
    """Of the slots that ``prefetch`` allows: with fewer, nothing would have been otherwise."""
    allowed, filled = e.stats.workers * e.setup.prefetch, e.stats.slots_filled
    return [f"{allowed - filled} of {allowed} slots were never used"] if 0 < filled < allowed else []
