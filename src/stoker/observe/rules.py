"""The rules of the diagnosis: each looks at the evidence, and finds something or not; the first that does is right.

So their order matters: what is sure from a single figure comes first, and what is left when nothing else explains the
wait comes last.
"""

from __future__ import annotations

from stoker.observe.culprits import Culprit, Finding, WhatIf
from stoker.observe.evidence import Evidence
from stoker.observe.forecast import MANY_WORKERS, SMALL_SHARE

_MOST = 0.5  # of the time: what took more than this is what to talk about
_STARVED = 0.15  # of its time without a core: more than a scheduler takes from a thread on a machine that has room
_FEW = 0.2  # of the samples: if more of them are slow, slow is what they are
_NEARLY_ALL = 0.8  # of the cores: workers that want as many leave none to others
_NOT_FOUND = 0.1  # of the samples: a cache that lacks more than this is cold
_ONE_CORE = 1.2  # what threads can use of all cores together, if they do not release the interpreter lock
_ORDINALS = ("second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


def _starved(e: Evidence) -> Finding | None:
    """Looked at first: it lengthens the consumer's own step, so that it need not wait at all."""
    if not e.stats.workers or not e.setup.is_here or e.cores.consumer_delay < max(_STARVED, e.wait):
        return None
    if e.cores.wanted < _NEARLY_ALL * e.cores.count:  # then it is another program that takes them
        return None
    fewer = max(min(e.stats.workers, e.cores.count) - 1, 1)
    remedy = f"{_argument(e, fewer)} leaves a core to it"
    if fewer == e.stats.workers:
        remedy = f"more cores, or a cheaper {e.setup.making}, would help"
    return Finding(
        Culprit.STARVED_CONSUMER,
        f"{_waited(e)}, but for a core to run on {percent(e.cores.consumer_delay)}: {e.stats.workers} workers wanted "
        f"{e.cores.wanted:.1f} of {e.cores.count} cores",
        remedy,
        "step",
    )


def _fed(e: Evidence) -> Finding | None:
    if not e.is_fed:
        return None
    if not e.stats.workers:
        return Finding(Culprit.CONSUMER, f"Training made its batches itself, {percent(e.wait)} of the time", "", "step")
    once = f"{_seconds(e.longest_wait)} for its first batch, and then " if e.wait >= SMALL_SHARE else ""
    share = e.other_wait if once else e.wait
    cause = (
        f"Training was kept fed: it waited {once}{percent(share)} of the time and the workers idled "
        f"{percent(e.idle)} of theirs"
    )
    needed = e.forecast.workers_needed()
    if needed is None or needed >= e.stats.workers:
        return Finding(Culprit.CONSUMER, cause, "", "step")
    would = _changes(e, needed)
    remedy = f"{_argument(e, needed)} would do"
    is_waste = needed <= e.stats.workers - 2 and needed <= e.stats.workers / 2
    culprit = Culprit.TOO_MANY_WORKERS if is_waste else Culprit.CONSUMER
    return Finding(culprit, cause, remedy, "idle" if is_waste else "step", would)


def _moving(e: Evidence) -> Finding | None:
    """Where workers need longer for the next batch, it holds nobody up, though each wait ends with it."""
    if e.share_of_wait("move") < _MOST or not e.forecast.is_quick_enough:
        return None
    share = percent(min(e.share_of_wait("move"), 1.0))
    if e.setup.on_device:
        return Finding(
            Culprit.DEVICE_COPY,
            f"{_waited(e)}. While it waited, a batch was on its way to the device {share} of the time",
            "smaller dtypes (convert on the device), or a to_device= that returns stoker.InFlight while its copy runs, "
            "would help; more workers would not",
            "move",
        )
    return Finding(
        Culprit.CONVERSION,
        f"{_waited(e)}. {share} of that was to=, in training's own thread",
        "do it in dataset[i] or collate=, where workers do it, or pass it as to_device=, which a thread calls ahead",
        "move",
    )


def _without_workers(e: Evidence) -> Finding | None:
    if e.stats.workers:
        return None
    busiest = "collation" if e.stats.writing > e.stats.fetching else e.setup.making
    share = max(e.stats.writing, e.stats.fetching) / e.busy
    needed = e.forecast.workers_needed() or min(max(e.cores.count, 1), 4)
    would = _changes(e, needed)
    return Finding(
        Culprit.NO_WORKERS,
        f"There are no workers: training made its batches itself, {percent(e.wait)} of the time, and "
        f"{percent(share)} of that work was {busiest}",
        f"{would[0].change} would cut that to about {percent(would[0].wait)}"
        if would and would[0].wait < e.wait - SMALL_SHARE
        else f"pass {_argument(e, needed)}",
        "write" if busiest == "collation" else "fetch",
        would,
    )


def _travelling(e: Evidence) -> Finding | None:
    if e.setup.is_here or e.during("transfer") <= e.during("fetch") + e.during("write"):
        return None
    return Finding(
        Culprit.TRANSFER,
        f"{_waited(e)}. While it waited, batches that were done were on their way here from other machines",
        "smaller batches, workers on nearer machines (placement, local=) or a faster network would help",
        "transfer",
    )


def _cold(e: Evidence) -> Finding | None:
    """The cache lacks many samples; or few, as these are later epochs, but their batches are the slow ones."""
    lacking = e.stats.calls / max(e.stats.samples, 1)
    is_cold = lacking >= _NOT_FOUND or (e.tail.units > 0 and all(one.calls for one in e.stats.slowest))
    if not e.setup.has_cache or not is_cold or e.share_of_workers("fetch") < _MOST:
        return None
    return Finding(
        Culprit.COLD_CACHE,
        f"{_worked(e, 'fetch')}: the cache lacked {percent(lacking)} of the samples",
        "the next epochs find them there",
        "fetch",
    )


def _slow_batches(e: Evidence) -> Finding | None:
    """A few batches take much longer than others, and those behind them must wait: in order, or for a worker."""
    count, excess = e.tail.units, e.tail.excess - e.cores.delay  # of which the scheduler may have taken so much
    holds_up = excess > _MOST * e.waiting and (e.share_of_wait("ready") > _MOST or e.forecast.is_quick_enough)
    if e.is_of_start or not (excess > _MOST * e.busy or holds_up):
        return None
    usual, slowest = e.stations[e.tail.station].spent, e.stats.slowest[0]
    making = "collation" if e.tail.station == "write" else e.setup.making
    prefetch = 4 * e.setup.prefetch
    asked = (
        ("in_order=False", e.forecast.what_if(in_order=False) if e.setup.in_order else None),
        (f"{e.setup.prefetch_argument}={prefetch}", e.forecast.what_if(prefetch=prefetch)),
    )
    would = tuple(WhatIf(change, wait) for change, wait in asked if wait is not None and wait < e.wait - SMALL_SHARE)
    cuts = [f"{what.change} would cut the wait to about {percent(what.wait)}" for what in would]
    return Finding(
        Culprit.SLOW_BATCHES,
        f"{_waited(e)}. {count} of {e.batches_of(usual.count)} batches took much longer than the others "
        f"({_seconds(usual.p50)}), and held them up: the slowest {_seconds(slowest.seconds)}, at position "
        f"{slowest.position} of epoch {slowest.epoch}{_slowest_sample(e)}",
        "; ".join(cuts) or f"look at the slowest by name, in stats().slowest: {making} has few that take so long",
        e.tail.station,
        would,
    )


def _slow_samples(e: Evidence) -> Finding | None:
    """So many batches have a sample that takes much longer than the others that no batch stands out."""
    slow = e.stats.slow_samples
    share = (slow.excess - e.cores.delay) / e.busy
    if not slow.count or share < _MOST or slow.count > _FEW * e.stats.samples:
        return None
    found = _working(e)
    one = slow.slowest[0]
    cause = (
        f"{_worked(e, 'fetch')}, and {percent(share)} of that was {slow.count} of {e.stats.samples} samples that took "
        f"much longer than the others: the slowest, sample {one.index}, {_seconds(one.seconds)}"
    )
    look = "look at the slowest by name, in stats().slow_samples"
    remedy = f"{look}; {found.remedy}" if found.remedy else look
    return Finding(Culprit.SLOW_SAMPLES, cause, remedy, "fetch", found.what_if)


def _handed_over(e: Evidence) -> Finding | None:
    """Workers had nothing to do, and yet training waited."""
    itself = e.own / max(e.waiting, 1e-9)
    if itself > _MOST and e.forecast.is_quick_enough:
        cause = f"{percent(itself)} of that was taking over batches that were ready"
        remedy = "bigger batches would help"
    elif e.share_of_workers("idle") > _MOST:
        cause = f"While it waited, workers idled {percent(e.share_of_workers('idle'))} of their time"
        remedy = (
            "items that come more quickly, or bigger ones, would help"
            if e.setup.pulls
            else f"{e.setup.prefetch_argument}={2 * e.setup.prefetch}, or bigger batches, would help"
        )
    else:
        return None
    return Finding(Culprit.HAND_OVER, f"{_waited(e)}. {cause}", remedy, "idle")


def _threaded(e: Evidence) -> Finding | None:
    """Libraries in workers compute with threads of their own, together with more than there are cores."""
    workers, cores = e.stats.workers, e.cores
    is_too_many = cores.threads >= 1.5 and cores.threads * workers > cores.count > 0
    if not is_too_many or cores.computing < _MOST:
        return None
    return Finding(
        Culprit.THREADS_IN_WORKERS,
        f"{_waited(e)}. While it waited, {workers} workers computed with {cores.threads:.0f} threads each, on "
        f"{cores.count} cores",
        "pass an init= that limits them (torch.set_num_threads(1), threadpoolctl.threadpool_limits(1)), or set "
        "OMP_NUM_THREADS=1 and OPENBLAS_NUM_THREADS=1",
        e.busiest,
    )


def _locked(e: Evidence) -> Finding | None:
    """Threads share one interpreter, and only one of them computes at a time."""
    if not e.setup.shares_interpreter or e.stats.workers < 2 or e.cores.computing < _MOST or e.cores.used > _ONE_CORE:
        return None
    return Finding(
        Culprit.INTERPRETER_LOCK,
        f"{_worked(e, 'fetch')}, and {e.stats.workers} threads computed on {e.cores.used:.1f} cores: "
        f"they share one interpreter lock",
        f"processes do not: workers={min(e.stats.workers, max(e.cores.count, 1))}",
        "fetch",
    )


def _crowded(e: Evidence) -> Finding | None:
    """More workers than cores, all of which want to compute."""
    cores, delay, workers = e.cores.count, e.cores.delay / e.busy, e.stats.workers
    if not cores or workers <= cores or delay < _MOST or e.cores.wanted <= cores:
        return None
    return Finding(
        Culprit.TOO_MANY_WORKERS,
        f"{_waited(e)}. {workers} workers shared {cores} cores, and had none {percent(min(delay, 1.0))} of the time",
        f"{_argument(e, cores)} would be as fast; a cheaper {e.setup.making} would help",
        e.busiest,
    )


def _working(e: Evidence) -> Finding:
    """Workers were busy all the time."""
    station, cores = e.busiest, e.cores.count
    cause = _worked(e, station)
    needed, is_computing = e.forecast.workers_needed(), e.cores.computing >= _MOST
    has_room = not is_computing or not cores or e.stats.workers < cores
    more = needed or min(2 * e.stats.workers, cores if is_computing and cores else MANY_WORKERS)
    is_enough = needed is not None and needed <= e.stats.workers  # by the model, which does not know all
    would = _changes(e, more) if has_room and not is_enough else ()
    if station == "write":
        otherwise = "a cheaper collate= or smaller samples would help"
        return Finding(Culprit.COLLATE, cause, _with_more(e, more, would, otherwise), station, would)
    if not is_computing and (needed is None or needed > cores):
        cause += f", which waited itself (for a disk, a network, or a lock) {percent(1 - e.cores.computing)} of that"
        return Finding(Culprit.LATENCY, cause, _with_more(e, more, would, _as_threads(e, more)), station, would)
    if needed is not None and has_room and e.stats.workers < needed:
        return Finding(Culprit.TOO_FEW_WORKERS, cause, _with_more(e, more, would, ""), station, would)
    others = f"{_argument(e, more)}, " if has_room else f"more workers would not help, as there are {cores} cores; "
    if is_enough:
        others = ""
    otherwise = f"{others}a cheaper {e.setup.making}, or cache=stoker.Cache(path), would help"
    return Finding(Culprit.DATASET, cause, _with_more(e, more, would, otherwise), station, would)


RULES = (
    _starved,
    _fed,
    _moving,
    _travelling,
    _cold,
    _without_workers,
    _slow_batches,
    _slow_samples,
    _handed_over,
    _threaded,
    _locked,
    _crowded,
    _working,
)


# Words


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _waited(e: Evidence) -> str:
    return f"Training waited for data {percent(e.wait)} of the time"


def _worked(e: Evidence, station: str) -> str:
    what = "collation" if station == "write" else e.setup.making
    if not e.stats.workers:
        made = f"Training made its batches itself, {percent(e.wait)} of the time"
        return f"{made}, and {percent(e.share_of_workers(station))} of that work was {what}"
    return f"{_waited(e)}. While it waited, {percent(e.share_of_workers(station))} of worker time was {what}"


def _changes(e: Evidence, workers: int) -> tuple[WhatIf, ...]:
    wait = e.forecast.what_if(workers=workers)
    return () if wait is None else (WhatIf(_argument(e, workers), wait),)


def _argument(e: Evidence, workers: int) -> str:
    """So many workers where they live now."""
    is_number = e.setup.backend not in ("Threads", "Ray") or e.setup.workers_argument != "workers"
    return f"{e.setup.workers_argument}={workers if is_number else f'stoker.{e.setup.backend}({workers})'}"


def _with_more(e: Evidence, more: int, would: tuple[WhatIf, ...], otherwise: str) -> str:
    """What more workers would bring, if they would bring something."""
    if not would or would[0].wait > e.wait - SMALL_SHARE:
        return otherwise
    change, wait = would[0].change, would[0].wait
    is_next = more == e.stats.workers + 1 and more - 2 < len(_ORDINALS)
    who = f"a {_ORDINALS[more - 2]} worker" if is_next else f"{more} workers"
    cut = f"{who} ({change}) would cut the wait to about {percent(wait)}"
    return f"{cut}; {otherwise}" if otherwise else cut


def _as_threads(e: Evidence, workers: int) -> str:
    may_be_many = "workers that hardly compute may be more than there are cores"
    if e.setup.workers_argument != "workers" or e.setup.backend == "Threads":
        return f"{may_be_many}, as in {_argument(e, workers)}" if workers > e.stats.workers else may_be_many
    return f"{may_be_many}, and threads will do: workers=stoker.Threads({workers})"


def _slowest_sample(e: Evidence) -> str:
    """If samples like this one explain what slow batches take."""
    slow = e.stats.slow_samples
    if slow.excess < _MOST * e.tail.excess or not slow.slowest:
        return ""
    return f"; sample {slow.slowest[0].index} alone took {_seconds(slow.slowest[0].seconds)}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"
