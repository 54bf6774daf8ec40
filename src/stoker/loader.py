"""The loader: a dataset, in batches, epoch after epoch."""

from __future__ import annotations

import operator
import os
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from stoker.arguments import check_chunked, checked_collate, checked_seconds
from stoker.bridges import Framework
from stoker.errors import ClosedError
from stoker.flows import ChunkedFlow, Flow, IndexedFlow
from stoker.observe import ErrorPolicy, Failures, OnError, Reference, Stats
from stoker.plan import Plan
from stoker.session import Session, Settings
from stoker.shards import shard_of
from stoker.sources import IndexedSource
from stoker.sources.chunks import Chunks
from stoker.stores import Cache, Keeping, Rotation
from stoker.workers import Workers
from stoker.workers.worker import Job

if TYPE_CHECKING:  # so that a loader without ``to=function`` is a Loader[Any] and needs no annotation
    import typing_extensions

    B = typing_extensions.TypeVar("B", default=Any)
else:
    B = TypeVar("B")


class Loader(Generic[B]):
    """Reads, prepares and batches a dataset in background workers, and hands over each batch uncopied.

    ``for batch in loader`` is one epoch; the next loop is the next epoch, already being prefetched. A batch lives in
    shared memory for as long as you hold any of its arrays, and never changes while you do.

    Args:
        dataset: An object with ``__getitem__`` and ``__len__`` (and perhaps ``__getitems__``), or a class,
            ``functools.partial`` or function that makes one in each worker; or ``Chunks(files, ...)``.
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
        policy = ErrorPolicy(on_error, max_errors, quarantine)
        settings = Settings.checked(
            workers=workers,
            prefetch=prefetch,
            in_order=in_order,
            timeout=timeout,
            max_deaths=max_deaths,
            policy=policy,
            to=to,
            device=device,
            to_device=to_device,
            max_on_device=max_on_device,
        )
        keeping = Keeping(cache, rotation)
        source = None if isinstance(dataset, Chunks) else IndexedSource.of(dataset)
        length = 0 if source is None or source.is_factory else len(dataset)
        plan = Plan(length, batch_size, shuffle, seed, drop_last, shard_of(shard), keeping.times, keeping.rotating)
        collate = checked_collate(collate)
        self._iteration: Iteration[B] | None = None
        self._flow: Flow
        if source is None:
            check_chunked(dataset, plan, cache, rotation)
            self._flow = ChunkedFlow(dataset, plan, collate, settings, Failures(policy, what="file"))
        else:
            store = keeping.opener(dataset, ahead=settings.ahead)
            reference = Reference(source.reference(), keeping.seed) if on_error == "quarantine" else None
            session = Session(
                "loader",
                plan,
                length_known=not source.is_factory,
                job=Job(source, plan, collate, policy.leaves_out, store),
                settings=settings,
                failures=Failures(policy, reference),
                new_store=keeping.new_file,
            )
            self._flow = IndexedFlow(session)
        self._end_with_me()

    def __iter__(self) -> Iteration[B]:
        """Begins an epoch: the next one, or, after ``load_state_dict``, the rest of the one that was saved."""
        self._flow.session.check_usable()
        if self._iteration is not None and self._iteration.taken:
            self._flow.go_to(self.epoch + 1)
        self._iteration = Iteration(self)
        return self._iteration

    def __len__(self) -> int:
        """Batches in an epoch. Starts the workers if only they can make the dataset."""
        return len(self._flow)

    @property
    def epoch(self) -> int:
        """The epoch that is being iterated; between two loops, the one that comes next."""
        return self._flow.epoch

    def set_epoch(self, epoch: int) -> None:
        """Makes the next loop epoch number ``epoch``. Where it is that anyway, as after a resume, nothing changes."""
        if isinstance(epoch, bool) or not hasattr(epoch, "__index__") or epoch < 0:
            raise ValueError(f"set_epoch({epoch!r}): write a whole number of 0 or more")
        epoch = operator.index(epoch)
        if epoch != self.epoch or self._iteration is not None:
            self._flow.session.check_usable()
            self._flow.go_to(epoch)
            self._iteration = None

    def state_dict(self) -> dict[str, Any]:
        """Where the consumer is, as a dict that JSON can hold. Batches that were prefetched do not count as taken."""
        return self._flow.state()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on with the batch after the last one that was taken when ``state`` was saved.

        The number of workers, the backend and, at a step boundary, the number of shards may be others than then.

        Raises:
            StateError: The state is damaged, or of another dataset length, batch size, shuffle or seed.
        """
        self._flow.session.check_usable()
        self._flow.load(state)
        self._iteration = None

    def warm_up(self, seconds: float | None = None) -> None:
        """Starts the workers, and waits until all that ``prefetch`` allows is ready, or for so many seconds.

        The next loop begins with it.
        """
        self._flow.session.warm_up(checked_seconds(seconds))

    @property
    def worker_pids(self) -> list[int]:
        """The worker processes that are up, for a profiler or a debugger; none before the start, nor of threads."""
        return self._flow.session.pids()

    def stats(self) -> Stats:
        """Figures since the start: counts, times, and ``stats().diagnosis``, who waited for whom."""
        return self._flow.stats()

    def close(self) -> None:
        """Ends the workers and frees the memory, but for batches that are still held. May be called twice."""
        self._iteration = None
        self._flow.close()

    def __enter__(self) -> Loader[B]:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_iteration": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._end_with_me()

    def _end_with_me(self) -> None:
        """A flow and its session may know each other, and would not end before the garbage collector finds them."""
        weakref.finalize(self, self._flow.close)

    def _take(self) -> B:
        """The next batch of the running epoch; StopIteration at its end."""
        try:
            return self._flow.take()  # type: ignore[no-any-return]
        except StopIteration:
            self._iteration = None
            raise


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
