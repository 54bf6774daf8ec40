"""The loader: the only place where the parts meet."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import operator
import os
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from stoker.arguments import checked_collate, checked_count, checked_flag, checked_seconds, checked_timeout
from stoker.bridges import Framework, bridge, goes_elsewhere
from stoker.engine import Delivery, Driver, Machine
from stoker.errors import ClosedError
from stoker.feed import Feed
from stoker.memory import Slots, limits_explained
from stoker.observe import ErrorPolicy, Failures, Meter, OnError, Stats
from stoker.plan import Batch, Cursor, Plan, from_state, to_state
from stoker.shards import shard_of
from stoker.sources import IndexedSource
from stoker.stores import Cache, Keeping, Rotation
from stoker.workers import Inline, Processes, Site, Workers, workers_of
from stoker.workers.failure import ordinary
from stoker.workers.worker import Job

if TYPE_CHECKING:  # so that a loader without ``to=function`` is a Loader[Any] and needs no annotation
    import typing_extensions

    B = typing_extensions.TypeVar("B", default=Any)
else:
    B = TypeVar("B")

log = logging.getLogger("stoker")

_UNDER_WAY = 2  # batches that a worker may have beside those that are ready: the one it makes, and the next
_RUNS_PER_WORKER = 8  # in an epoch, at least: with fewer, one worker might have much more to do than another


class Loader(Generic[B]):
    """Reads, prepares and batches a dataset in background workers, and hands over each batch uncopied.

    ``for batch in loader`` is one epoch; the next loop is the next epoch, already being prefetched. A batch lives in
    shared memory for as long as you hold any of its arrays, and never changes while you do.

    Args:
        dataset: An object with ``__getitem__`` and ``__len__`` (and perhaps ``__getitems__``), or a class,
            ``functools.partial`` or function that makes one in each worker.
        batch_size: Samples in a batch. None: single samples, not collated.
        shuffle: True: the whole dataset. An int w: nearby shuffle, no sample moves as far as w places.
        seed: Of the order and of all random numbers that workers draw.
        drop_last: Leave out a last batch that is not full.
        shard: (index, count): this consumer's share; "auto": from torch.distributed, RANK and WORLD_SIZE, or JAX.
        workers: A number of processes (0: none), "auto", ``Inline()``, ``Threads(n)`` or ``Processes(n, start=...)``.
        prefetch: Batches made ahead, per worker.
        collate: list of samples -> batch; by default, arrays are stacked.
        cache: ``Cache(path, ...)``: samples are kept on disk, and made anew every few epochs or never.
        rotation: ``Rotation(times, ...)``: each sample is made once and used several times in an epoch.
        on_error: What becomes of a sample whose ``dataset[i]`` raises, kills its worker ``max_deaths`` times or exceeds
            ``timeout`` as often. "raise"; "skip": leave it out, so that its batch shrinks; "quarantine": leave it out
            and append index, epoch, error and traceback to a JSON-lines file, for ``stoker replay``.
        max_errors: Samples that may be left out in an epoch, as a count or as a share (a float); None: all but one.
        quarantine: That file; None: ``quarantine.jsonl``.
        timeout: Seconds that a worker may take for a batch, and ten times that (at least 5 s) for making the dataset,
            before its stack is logged and another takes its place. None: any time. Inline, nobody is there to look
            at the clock.
        max_deaths: Workers that may die over one batch before it is given up.
        in_order: False: batches come as they are finished, each still just once an epoch.
        to: "numpy", "torch", "jax", "tensorflow", "tinygrad", or a callable that gets each batch.
        device: Where ``to``'s framework is to put it: ahead of time, by a thread, unless that is the CPU.
        to_device: A callable that gets the batch (and ``device``, if it takes two arguments) and moves it, in that
            thread; if its copy goes on in the background, it returns an ``InFlight``.
        max_on_device: Batches that are on the device, or on their way there, ahead of the consumer.

    Example:
        >>> import numpy as np, stoker
        >>> data = np.arange(10)
        >>> with stoker.Loader(data, batch_size=4) as loader:
        ...     [batch.tolist() for batch in loader]
        [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 32,
        *,
        shuffle: bool | int = False,
        seed: int = 0,
        drop_last: bool = False,
        shard: tuple[int, int] | Literal["auto"] | None = None,
        workers: int | Literal["auto"] | Workers = 0,
        prefetch: int = 2,
        collate: Callable[[list[Any]], Any] | None = None,
        cache: Cache | None = None,
        rotation: Rotation | None = None,
        on_error: OnError = "raise",
        max_errors: int | float | None = None,
        quarantine: str | os.PathLike[str] | None = None,
        timeout: float | None = None,
        max_deaths: int = 3,
        in_order: bool = True,
        to: Framework | Callable[[Any], B] | None = None,
        device: Any = None,
        to_device: Callable[..., Any] | None = None,
        max_on_device: int = 2,
    ) -> None:
        source = IndexedSource.of(dataset)
        length = 0 if source.is_factory else len(dataset)
        self._keeping = keeping = Keeping(cache, rotation)
        shard = shard_of(shard)
        self._plan = Plan(length, batch_size, shuffle, seed, drop_last, shard, keeping.times, keeping.rotating)
        self._length_known = not source.is_factory
        self._workers = workers_of(workers)
        self._prefetch = checked_count("prefetch", prefetch, "batches per worker")
        self._in_order = checked_flag("in_order", in_order)
        self._timeout = checked_timeout(timeout)
        self._max_deaths = checked_count("max_deaths", max_deaths, "deaths over one batch")
        self._policy = ErrorPolicy(on_error, max_errors, quarantine)
        self._failures = Failures(self._policy, source.reference() if on_error == "quarantine" else {}, keeping.seed)
        self._notes: set[str] = set()
        self._bridge = bridge(to, device, to_device)
        ahead = checked_count("max_on_device", max_on_device, "batches")
        self._ahead = ahead if goes_elsewhere(device, to_device) and not isinstance(self._workers, Inline) else 0
        self._cursor = Cursor()
        self._failed: Batch | None = None  # raised in its place; passed over if the consumer goes on
        self._in_step = False  # the engine will deliver what the cursor comes to next
        self._iteration: Iteration[B] | None = None
        self._meter = Meter(0 if isinstance(self._workers, Inline) else self._workers.n)
        self._feed: Feed | None = None
        self._finalizer: weakref.finalize[[Feed, Site, int], Loader[B]] | None = None
        self._owner = 0
        self._closed = False
        store = keeping.opener(dataset, ahead=self._workers.n * (self._prefetch + _UNDER_WAY) + self._ahead)
        self._job: Job | None = Job(source, self._plan, checked_collate(collate), self._policy.leaves_out, store)
        self._site: Site | None = self._workers.prepare(self._job)

    def __iter__(self) -> Iteration[B]:
        """Begins an epoch: the next one, or, after ``load_state_dict``, the rest of the one that was saved."""
        self._check_usable()
        if self._iteration is not None and self._iteration.taken:
            self._jump(Cursor(self._cursor.epoch + 1))
        self._iteration = Iteration(self)
        return self._iteration

    def __len__(self) -> int:
        """Batches in an epoch. Starts the workers if only they can make the dataset."""
        return len(self._known_plan())

    @property
    def epoch(self) -> int:
        """The epoch that is being iterated; between two loops, the one that comes next."""
        return self._cursor.epoch

    def set_epoch(self, epoch: int) -> None:
        """Makes the next loop epoch number ``epoch``. Where it is that anyway, as after a resume, nothing changes."""
        if isinstance(epoch, bool) or not hasattr(epoch, "__index__") or epoch < 0:
            raise ValueError(f"set_epoch({epoch!r}): write a whole number of 0 or more")
        epoch = operator.index(epoch)
        if epoch != self._cursor.epoch or self._iteration is not None:
            self._jump(Cursor(epoch))

    def state_dict(self) -> dict[str, Any]:
        """Where the consumer is, as a dict that JSON can hold. Batches that were prefetched do not count as taken."""
        return to_state(self._cursor, self._known_plan())

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on with the batch after the last one that was taken when ``state`` was saved.

        The number of workers, the backend and, at a step boundary, the number of shards may be others than then.

        Raises:
            StateError: The state is damaged, or of another dataset length, batch size, shuffle or seed.
        """
        self._jump(from_state(state, self._known_plan()))

    def warm_up(self, seconds: float | None = None) -> None:
        """Starts the workers, and waits until all that ``prefetch`` allows is ready, or for so many seconds.

        The next loop begins with it.
        """
        seconds = checked_seconds(seconds)
        self._check_usable()
        plan = self._known_plan()
        self._pass_over_failed(plan)
        self._seek(plan, seconds)

    @property
    def worker_pids(self) -> list[int]:
        """The worker processes that are up, for a profiler or a debugger; none before the start, nor of threads."""
        return [] if self._feed is None or self._owner != os.getpid() else self._feed.pids()

    def stats(self) -> Stats:
        """Figures since the start: counts, times, and ``stats().diagnosis``, who waited for whom."""
        return self._meter.stats()

    def close(self) -> None:
        """Ends the workers and frees the memory, but for batches that are still held. May be called twice."""
        self._closed = True
        self._iteration = None
        try:
            self._stop()
        finally:
            if self._site is not None:
                self._site.free()
            self._job = self._site = None

    def __enter__(self) -> Loader[B]:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        if self._feed is not None or self._closed:
            raise TypeError("a loader that has been started cannot be pickled: pickle it before its first use")
        return {name: value for name, value in vars(self).items() if name not in ("_site", "_iteration")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        assert self._job is not None
        self._iteration = None
        self._site = self._workers.prepare(self._job)

    def _take(self) -> B:
        """The next batch of the running epoch; StopIteration at its end."""
        self._check_usable()
        plan = self._known_plan()
        self._pass_over_failed(plan)
        self._meter.begin()
        while not self._cursor.at_end(plan):
            delivery = self._next(plan)
            if delivery.skipped or delivery.error is not None:
                self._note_failures(delivery, plan)
            self._cursor.deliver(delivery.batch, plan)
            self._in_step = True
            if delivery.made is not None and delivery.made.samples:  # else all were left out
                return delivery.data  # type: ignore[no-any-return]
        self._cursor.next_epoch()
        self._iteration = None
        raise StopIteration

    def _next(self, plan: Plan) -> Delivery:
        """What comes after the cursor, wherever the engine was. Out of step until the cursor has moved on, too."""
        if not self._in_step:
            self._seek(plan)
        assert self._feed is not None
        self._in_step = False  # Ctrl-C may come at any point from here on
        delivery = self._feed.take()
        if delivery.made is not None:
            if delivery.made.notes:
                self._log(delivery.made.notes)
            self._meter.delivered(delivery.made, delivery.worker, delivery.idle, delivery.waited, delivery.moving)
        return delivery

    def _seek(self, plan: Plan, warm_up: float = 0.0) -> None:
        self._in_step = False
        self._started().seek(self._cursor.onwards(plan), plan, self._longest_run(plan), warm_up)
        self._in_step = True

    def _pass_over_failed(self, plan: Plan) -> None:
        """The consumer goes on after an error."""
        if self._failed is not None:
            self._cursor.deliver(self._failed, plan)
            self._failed = None

    def _note_failures(self, delivery: Delivery, plan: Plan) -> None:
        """Takes note of what was left out of a batch, and raises the error that comes in its place."""
        try:
            if delivery.skipped:
                self._meter.skipped(len(delivery.skipped))
                self._failures.note(delivery.skipped, delivery.batch, plan, self._cursor.skipped)
                self._cursor.skipped += len(delivery.skipped)
            if delivery.error is not None:
                raise ordinary(delivery.error)
        except Exception:
            self._failed = delivery.batch
            self._in_step = True
            raise

    def _log(self, notes: tuple[str, ...]) -> None:
        """Each once, however many workers say so."""
        for note in notes:
            if note not in self._notes:
                self._notes.add(note)
                log.warning("%s", note)

    def _jump(self, cursor: Cursor) -> None:
        self._check_usable()
        self._cursor = cursor
        self._failed = None
        self._iteration = None
        self._in_step = False

    def _known_plan(self) -> Plan:
        if not self._length_known:
            length = self._started().length()
            self._plan = dataclasses.replace(self._plan, length=length)
            self._length_known = True
        return self._plan

    def _started(self) -> Feed:
        """The engine, halted. Started when first needed, and anew if it was interrupted in the middle of something."""
        if self._feed is not None and not self._feed.halt():
            self._stop()
        if self._feed is None:
            self._check_usable()
            assert self._site is not None
            self._owner = os.getpid()  # first: Ctrl-C may come between two lines
            self._feed = Feed(self._new_driver(self._site), self._bridge, self._ahead)
            self._job = None  # from now on the dataset is the workers' own
            self._in_step = False
            self._finalizer = weakref.finalize(self, _close_in, self._feed, self._site, self._owner)
        return self._feed

    def _new_driver(self, site: Site) -> Driver:
        """A driver with its memory and workers, or, if anything fails on the way, nothing of it."""
        count, leave_out = self._workers.n, self._policy.leaves_out
        machine = Machine(
            workers=count,
            window=1 if isinstance(self._workers, Inline) else count * self._prefetch,
            depth=min(2, self._prefetch),
            in_order=self._in_order,
            deaths_allowed=self._max_deaths,
            leave_out=leave_out,
        )
        with limits_explained(), contextlib.ExitStack() as undo:
            slots = Slots.create()
            undo.callback(slots.close)
            store = self._keeping.new_file()
            if store is not None:
                undo.callback(os.close, store)
            backend = site.build(slots, slots.fd if store is None else store)
            undo.callback(backend.close)
            driver = Driver(
                machine,
                backend,
                slots,
                store=store,
                timeout=None if isinstance(self._workers, Inline) else self._timeout,
                deaths_allowed=self._max_deaths,
                leave_out=leave_out,
            )
            undo.pop_all()
            return driver

    def _stop(self) -> None:
        if self._feed is not None and self._owner == os.getpid():
            feed, self._feed = self._feed, None
            if self._finalizer is not None:  # else Ctrl-C came just before
                self._finalizer.detach()
            feed.close()

    def _longest_run(self, plan: Plan) -> int:
        """Batches that a worker may make in one go: only where order keeps a slow one from being overtaken anyway."""
        if not isinstance(self._workers, Processes) or not self._in_order or plan.times > 1:
            return 1  # rotating samples must not get too far apart
        return max(1, plan.rounds // (_RUNS_PER_WORKER * self._workers.n))

    def _check_usable(self) -> None:
        if self._closed:
            raise ClosedError("this loader was closed: make a new one")
        if self._feed is not None and self._owner != os.getpid():
            raise ClosedError(
                f"this loader was started in process {self._owner} and is used in its fork {os.getpid()}: "
                f"make a loader in each process, or fork before its first use"
            )


class Iteration(Generic[B]):
    """One epoch, or what is left of it."""

    def __init__(self, loader: Loader[B]) -> None:
        self._loader = loader
        self._ended = False
        self.taken = 0

    def __iter__(self) -> Iteration[B]:
        return self

    def __next__(self) -> B:
        if self._ended:
            raise StopIteration
        if self._loader._iteration is not self:
            raise ClosedError(
                "this iterator was replaced by a newer one of the same loader (or the loader was closed or moved): "
                "make two loaders to iterate twice at the same time"
            )
        self.taken += 1
        try:
            return self._loader._take()
        except StopIteration:
            self._ended = True
            raise


def _close_in(feed: Feed, site: Site, owner: int) -> None:
    """A forked child has copies of our descriptors, but the workers are its parent's."""
    if os.getpid() == owner:
        feed.close()
        site.free()
