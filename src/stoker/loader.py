"""The loader: a dataset, in batches, epoch after epoch."""

from __future__ import annotations

import functools
import os
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from stoker.agenda import IndexedAgenda
from stoker.arguments import (
    answers_unknown_names,
    check_chunked,
    check_chunked_shard,
    check_rotation,
    checked_collate,
    checked_epoch,
    checked_init,
    checked_seconds,
    named,
)
from stoker.bridges import Framework
from stoker.errors import ClosedError
from stoker.observe import ErrorPolicy, Failures, OnError, Reference, Setup, Stats, Trace
from stoker.observe.page import Watch
from stoker.plan import Plan
from stoker.session import Session
from stoker.settings import Settings
from stoker.shards import check_still, shard_of, warn_if_all_read_all
from stoker.sources import IndexedSource, is_chunks
from stoker.stores import Cache, Keeping, Rotation
from stoker.workers import Workers
from stoker.workers.worker import Job

if TYPE_CHECKING:  # so that a loader without ``to=function`` is a Loader[Any] and needs no annotation
    import typing_extensions

    from stoker.sources.chunks import Chunks

    B = typing_extensions.TypeVar("B", default=Any)
else:
    B = TypeVar("B")


class Loader(Generic[B]):
    """Reads, prepares and batches a dataset in background workers, and hands over each batch in shared memory.

    ``for batch in loader`` is one epoch. The next loop is the next epoch, which is already being prefetched. You own
    each batch: its memory is not used again while you hold any of its arrays, and nobody else writes into it.

    Args:
        dataset: An object with ``__getitem__`` and ``__len__``, and optionally ``__getitems__``; a dict of arrays,
            whose rows are the samples; a class, ``functools.partial`` or function that returns one of these, and is
            called in each worker; or ``Chunks(files, ...)``.
        batch_size: The number of samples in a batch. None: single samples, which are not collated.
        shuffle: True: shuffle the whole dataset. An int w: shuffle nearby samples only, so that each sample stays less
            than w positions from its own.
        seed: Seeds the shuffle order and all random generators in workers.
        drop_last: Drop the last batch if it is not full.
        shard: (index, count): the part of the dataset that this process reads. "auto": found in torch.distributed, JAX,
            or the environment variables RANK and WORLD_SIZE, when the first loop begins. None: the whole dataset.
        even_shards: True: every shard has the same number of batches, so that no process waits for another at the end;
            if fewer samples than shards are left, some are repeated. False: each sample is in exactly one shard, and
            some shards may have one batch fewer, as you want it for an evaluation.
        workers: The number of worker processes (0: none), "auto", ``Auto()``, ``Inline()``, ``Threads(n)``,
            ``Processes(n, start=...)`` or ``Ray(n, ...)``.
        prefetch: The number of batches that are made ahead, per worker.
        collate: A function that takes a list of samples and returns the batch. None: ``stoker.collate``, which stacks
            arrays.
        init: A function without arguments that is called once in each worker before the dataset is made or used, also
            in a worker that replaces another: it sets up what a worker does not inherit, such as module globals. With
            ``Threads`` it is called in each thread; inline, before the first batch. Its errors are raised.
        cache: ``Cache(path, ...)``: keeps samples on disk, and makes them again every few epochs or never.
        rotation: ``Rotation(times, ...)``: makes each sample once and uses it several times in an epoch.
        on_error: What to do with a sample whose ``dataset[i]`` raises, kills its worker ``max_deaths`` times or exceeds
            ``timeout`` that often. "raise": raise the error. "skip": leave the sample out, so that its batch is
            smaller. "quarantine": leave it out and append its index, epoch, error and traceback to a JSON-lines file
            for ``stoker replay``.
        max_errors: The number of samples that may be left out in an epoch, or their share as a float. None: all but
            one.
        quarantine: The file for on_error="quarantine". None: ``quarantine.jsonl``.
        timeout: The number of seconds that a worker may take for a batch; to make the dataset it may take ten times as
            long, and at least 5 s. After that its stack is logged and it is restarted. None: no limit. Has no effect
            inline, where there is nobody to watch.
        max_deaths: The number of workers that may die over one batch before Stoker gives the batch up.
        in_order: False: batches arrive in the order in which they are finished, each still exactly once per epoch.
        to: "numpy", "torch", "jax", "tensorflow", "tinygrad" or "arrow": the framework whose arrays the batch shall
            hold; or a function that gets each batch and returns what you want instead.
        device: The device on which the framework of ``to`` puts the batch. A thread moves batches there ahead of time,
            unless the device is the CPU. A device that does not exist is a ``ValueError``.
        to_device: A function that moves the batch to the device, called in that thread. It gets the batch, and
            ``device`` if it takes two arguments. It may return an ``InFlight`` while its copy is still running.
        max_on_device: The number of batches that are on the device, or on their way there, ahead of you.
        observe: False: measure nothing, and count only. It saves about a microsecond a batch.
        watch: True, or ``Watch(host=..., port=...)``: shows what the loader does on a page in your browser, live, from
            the first loop on. The URL is printed, and is ``loader.watch_url``.
        progress: True: show a bar with batches a second, the share of the time that you wait for them, and the time
            left, in a terminal or notebook. Of several shards, only the first one shows it.

    Raises:
        TypeError: An argument has the wrong type, or is unknown.
        ValueError: An argument has a wrong value. Bad arguments are found before any process starts.

    Example:
        >>> import numpy as np, stoker
        >>> data = np.arange(10)
        >>> with stoker.Loader(data, batch_size=4) as loader:
        ...     [batch.tolist() for batch in loader]
        [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    """

    @answers_unknown_names
    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 32,
        *,
        shuffle: bool | int = False,
        seed: int = 0,
        drop_last: bool = False,
        shard: tuple[int, int] | Literal["auto"] | None = None,
        even_shards: bool = True,
        workers: int | Literal["auto"] | Workers = 0,
        prefetch: int = 2,
        collate: Callable[[list[Any]], Any] | None = None,
        init: Callable[[], object] | None = None,
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
        observe: bool = True,
        watch: bool | Watch = False,
        progress: bool = False,
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
            observe=observe,
            watch=watch,
            progress=progress,
        )
        check_rotation(rotation, settings.workers)
        keeping = Keeping(cache, rotation)
        source = None if is_chunks(dataset) else IndexedSource.of(dataset)
        dataset = dataset if source is None else source.dataset  # which of columns is made a dataset
        length = 0 if source is None or source.is_factory else len(dataset)
        rotation_of_plan = keeping.times, keeping.rotating
        plan = Plan(length, batch_size, shuffle, seed, drop_last, shard_of(shard), *rotation_of_plan, even_shards)
        self._given_shard, self._shard_is_checked = shard, False
        collate, init = checked_collate(collate), checked_init(init)
        self._about = f"{named(dataset)}, batch_size={batch_size}, shuffle={shuffle}"
        self._pass: Pass | None = None
        self._chunks: Chunks | None = dataset if source is None else None
        if source is None:
            from stoker.chunk_session import (
                chunk_session,  # when used: with all of files, a quarter of importing stoker
            )

            check_chunked(dataset, plan, cache, rotation)
            self._session = chunk_session(dataset, plan, collate, init, settings)
        else:
            store = keeping.opener(dataset, settings.ahead, settings.usually_ahead)
            reference = (
                Reference(source.reference(), keeping.seed, source.secrets()) if on_error == "quarantine" else None
            )
            self._session = Session(
                "loader",
                IndexedAgenda(plan, source, settings.longest_run),
                job=Job(source, plan, collate, policy.leaves_out, store, init),
                settings=settings,
                failures=Failures(policy, reference),
                new_store=keeping.new_file,
                reopen_store=functools.partial(keeping.reopener, dataset, settings.ahead, settings.usually_ahead),
                setup=Setup(has_cache=cache is not None),
            )
        self._session.showing.title = f"Loader({self._about})"
        self._end_with_me()

    def __iter__(self) -> Iteration[B]:
        """Begins the next epoch or, after ``load_state_dict``, the rest of the epoch that was saved."""
        self._session.check_usable()
        self._check_shard()
        if self._pass is not None and self._pass.is_begun and self.epoch == self._pass.epoch:
            self._session.go_to(self.epoch + 1)
        self._session.begin_epoch()
        self._pass = Pass(self.epoch)
        iteration = Iteration(self, self._pass)
        self._session.showing.show_progress(f"epoch {self.epoch}", iteration)
        return iteration

    def __len__(self) -> int:
        """The number of batches in an epoch. Starts the workers if only they can make the dataset."""
        self._find_shard()
        return len(self._session)

    @property
    def epoch(self) -> int:
        """The epoch that is being iterated or, between two loops, the next one."""
        return self._session.epoch

    def set_epoch(self, epoch: int) -> None:
        """Makes ``epoch`` the next epoch. Changes nothing if it is the next one already, as after a resume.

        Raises:
            ValueError: ``epoch`` is not a whole number from 0 to 2**53 - 1.
        """
        epoch = checked_epoch(epoch)
        if epoch != self.epoch or self._pass is not None:
            self._session.go_to(epoch)
            self._pass = None

    def state_dict(self) -> dict[str, Any]:
        """The position of the consumer, as a dict that JSON can hold. Prefetched batches do not count as taken."""
        self._find_shard()
        return self._session.state()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continues with the batch after the last one that was taken when ``state`` was saved.

        The number of workers and the backend may differ from then, and so may the number of shards if all shards were
        saved at the same step.

        Raises:
            StateError: The state is damaged, or was saved with another dataset length, batch size, shuffle or seed.
        """
        self._session.check_usable()
        self._find_shard()
        self._session.load(state)
        self._pass = None

    def warm_up(self, seconds: float | None = None) -> None:
        """Starts the workers, and waits until they have prefetched as much as ``prefetch`` allows.

        The next loop begins with these batches.

        Args:
            seconds: The longest time to wait. None: as long as it takes.
        """
        seconds = checked_seconds(seconds)
        self._session.check_usable()
        self._check_shard()
        self._session.warm_up(seconds)

    @property
    def worker_pids(self) -> list[int]:
        """The ids of the running worker processes, for a profiler or debugger. Empty before the start."""
        return self._session.pids()

    def stats(self) -> Stats:
        """Counts and times since the start, and a sentence that says who waited for whom: ``stats().diagnosis``."""
        return self._session.stats()

    def report(self, path: str | os.PathLike[str] | None = None) -> None:
        """Says where the time went: the sentence of ``stats().diagnosis``, then tables of stations and workers.

        Args:
            path: An HTML file to write, with pictures, which needs no network to be looked at. None: print it.

        Raises:
            OSError: The file cannot be written.
        """
        self._session.showing.observed.report(path)

    @property
    def watch_url(self) -> str | None:
        """Where the live page is, from the first loop on; None without ``watch``."""
        return self._session.showing.watch_url

    def trace(self, to: str | os.PathLike[str] | Trace) -> Trace:
        """Writes a trace of the last 4096 batches for Perfetto; in a ``with`` statement, one of all within the block.

        Args:
            to: The file to write; ``.gz`` is compressed. Or a ``Trace``, which may have several loaders: then nothing
                is written before the end of the block.

        Raises:
            OSError: The file cannot be written.
            ValueError: Nothing is measured: observe=False.

        Example:
            >>> import os, tempfile, numpy as np, stoker
            >>> with tempfile.TemporaryDirectory() as folder, stoker.Loader(np.arange(100), 10) as loader:
            ...     with loader.trace(path := os.path.join(folder, "trace.json")):
            ...         batches = list(loader)
            ...     os.path.exists(path)
            True
        """
        return self._session.showing.trace(to)

    def close(self) -> None:
        """Stops the workers and frees all memory except for batches that you still hold. May be called twice."""
        self._pass = None
        self._session.close()
        self._finalizer.detach()

    def __enter__(self) -> Loader[B]:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Loader({self._about}, epoch={self.epoch}, {self._session.phase()})"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_finalizer"} | {"_pass": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._end_with_me()

    def _find_shard(self) -> None:
        """``"auto"`` is asked for anew until the workers have started: process groups come up late."""
        session = self._session
        if self._given_shard == "auto" and session.is_fresh:
            found = shard_of("auto")
            if found != session.shard:
                if self._chunks is not None:
                    check_chunked_shard(self._chunks, found)
                session.set_shard(found)

    def _check_shard(self) -> None:
        """As a loop or the workers begin."""
        self._find_shard()
        self._session.showing.watch()
        if self._given_shard == "auto":
            check_still(self._session.shard)
        if not self._shard_is_checked:
            self._shard_is_checked = True
            warn_if_all_read_all(self._given_shard, stacklevel=3)

    def _end_with_me(self) -> None:
        """Not when the garbage collector finds its parts, which may know each other."""
        self._finalizer = weakref.finalize(self, self._session.close)


@dataclass(slots=True)
class Pass:
    """One time through an epoch, or what is left of it. What a loader knows of its newest iterator, which knows it."""

    epoch: int
    is_begun: bool = False


class Iteration(Generic[B]):
    """The iterator over an epoch. Keeps its loader alive, and not the other way round."""

    def __init__(self, loader: Loader[B], own: Pass) -> None:
        self._loader = loader
        self._pass = own
        self._session = loader._session
        self._ended = self._interrupted = False

    def __iter__(self) -> Iteration[B]:
        return self

    def __next__(self) -> B:
        if self._ended:
            raise StopIteration
        if self._loader._pass is not self._pass:
            raise ClosedError(
                "this iterator was replaced by a newer one of the same loader (or the loader was closed or moved): "
                "make two loaders to iterate twice at the same time"
            )
        self._pass.is_begun = True
        try:
            if self._interrupted and self._session.epoch != self._pass.epoch:  # when the epoch had just ended
                delivery = None
            else:
                delivery = self._session.offer()
                if delivery is None:
                    self._session.end_epoch()
        except BaseException:
            self._interrupted = True
            raise
        if delivery is None:
            self._ended, self._loader._pass = True, None
            raise StopIteration
        # Without a call from here on: an interrupt comes either before it is counted, or when the caller has it.
        batch, delivery.data, delivery.is_taken = delivery.data, None, True
        return batch  # type: ignore[no-any-return]
