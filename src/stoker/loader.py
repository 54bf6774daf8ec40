"""The loader: a dataset, in batches, epoch after epoch."""

from __future__ import annotations

import inspect
import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, Unpack, overload

from stoker.arguments import answers_unknown_names, check_has_index, checked_after, checked_epoch, checked_step
from stoker.attributes import check_settable
from stoker.bridges import Framework
from stoker.collation import Pack
from stoker.front import Front
from stoker.iteration import B_co, Iteration, Pass, Passes
from stoker.loader_session import loader_session
from stoker.observe import ErrorPolicy, OnError
from stoker.observe.page import Watch
from stoker.orders import OwnOrder, shard_beside
from stoker.own_shard import OwnShard
from stoker.plan import Plan
from stoker.settings import Settings
from stoker.shards import shard_of
from stoker.sources import Retry
from stoker.stores import Cache, Keeping, Rotation
from stoker.workers import Workers

if TYPE_CHECKING:
    from stoker.options import AsCollated, Collate, DatasetLike, InFramework, OnDevice, S, Through


class Loader(Front, Generic[B_co]):
    """Reads, prepares and batches a dataset in background workers, and hands over each batch in shared memory.

    ``for batch in loader`` is one epoch. The next loop is the next epoch, which is already being prefetched. You own
    each batch: its memory is not used again while you hold any of its arrays, and nobody else writes into it.

    Each argument is also an attribute of that name, to be read: ``loader.batch_size``.

    Args: What is read, and in which order
        dataset: An object with ``__getitem__`` and ``__len__``, and optionally ``__getitems__``; a dict of arrays,
            whose rows are the samples; a class, ``functools.partial`` or function that returns one of these, and is
            called in each worker; ``Mix(sources, weights)``; or ``Chunks(files, ...)``.
        batch_size: The number of samples in a batch. None: single samples, which are not collated.
        shuffle: True: shuffle the whole dataset. An int w: shuffle nearby samples only, so that each sample stays less
            than w positions from its own.
        seed: Seeds the shuffle order and all random generators in workers.
        drop_last: Drop the last batch if it is not full.
        shard: (index, count): the part of the dataset that this process reads. "auto": found in torch.distributed, JAX,
            or the environment variables RANK and WORLD_SIZE, when the first loop begins. None: the whole dataset.
        even_shards: True: every shard has the same number of batches; if fewer samples than shards are left, some are
            repeated. False, as for an evaluation: no sample is, and some shards may have one batch fewer.
        order: An order of your own: ``Weighted(...)``, ``Buckets(...)``, an array of indices, a function that gets the
            epoch's number and returns its indices, or any torch sampler. None: each sample once, as ``shuffle`` says.

    Args: How batches are made
        collate: A function that takes a list of samples and returns the batch. None: ``stoker.collate``.
        pack: ``Pack(length, ...)``: packs sequences into rows of one length; a batch is ``batch_size`` rows.
        cache: ``Cache(path, ...)``: keeps samples on disk, and makes them again every few epochs or never.
        rotation: ``Rotation(times, ...)``: makes each sample once and uses it several times in an epoch.

    Args: Workers
        workers: The number of worker processes (0: none), "auto", ``Auto()``, ``Inline()``, ``Threads(n)``,
            ``Processes(n, start=...)`` or ``Ray(n, ...)``.
        prefetch: The number of batches that are made ahead, per worker; 2 by default.
        in_order: False: batches arrive in the order in which they are finished, each still exactly once per epoch.
        init: A function without arguments that is called once in each worker before the dataset is made or used, also
            in one that replaces another; with ``Threads``, in each thread. It sets up what a worker does not inherit.

    Args: Failures
        on_error: What to do with a sample whose ``dataset[i]`` raises, kills its worker ``max_deaths`` times or exceeds
            ``timeout`` that often. "raise": raise the error. "skip": leave the sample out, so that its batch is
            smaller. "quarantine": leave it out and append its index, epoch, error and traceback to a JSON-lines file
            for ``stoker replay``. "replace": another sample takes its place, so that the batch keeps its size.
        max_errors: The number of samples that may fail in an epoch, or their share as a float. None: all but one.
        quarantine: The file for on_error="quarantine" (None: ``quarantine.jsonl``) or "replace" (None: no file).
        retry: How often a sample, or a part of a chunk file, whose reading raised an ``OSError`` is read again before
            ``on_error`` applies: a number, or ``Retry(times, backoff=..., on=...)``.
        timeout: The number of seconds that a worker may take for a batch; for the dataset ten times as long, and at
            least 5 s. After that its stack is logged and it is restarted. None: no limit. Has no effect inline.
        max_deaths: The number of workers that may die over one batch before Stoker gives the batch up; 3 by default.

    Args: Frameworks and devices
        to: "numpy", "torch", "jax", "tensorflow", "tinygrad" or "arrow": the framework whose arrays the batch shall
            hold; or a function that gets each batch and returns what you want instead.
        device: The device on which the framework of ``to`` puts the batch. Unless that is the CPU, a thread moves
            batches there ahead of time.
        to_device: A function that moves the batch to the device, called in that thread. It gets the batch, and
            ``device`` if it takes two arguments. It may return an ``InFlight`` while its copy is still running.
        max_on_device: The number of batches that are on the device, or on their way there, ahead of you; 2 by default.

    Args: Watching
        observe: False: measure nothing, and count only. It saves about a microsecond a batch.
        watch: True, or ``Watch(host=..., port=...)``: shows what the loader does on a live page in your browser, whose
            URL is printed, and is ``loader.watch_url``.
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

    # What type a batch has, for type checkers; the last signature is the one there is: docs/design/types.md.
    @overload
    def __init__(
        self, dataset: DatasetLike[Any], batch_size: int = 32, *, collate: None = None, **options: Unpack[AsCollated]
    ) -> None: ...
    @overload
    def __init__(
        self, dataset: DatasetLike[B_co], batch_size: None, *, collate: None = None, **options: Unpack[AsCollated]
    ) -> None: ...
    @overload
    def __init__(
        self, dataset: DatasetLike[S], batch_size: int = 32, *, collate: Collate[S, B_co], **options: Unpack[AsCollated]
    ) -> None: ...
    @overload
    def __init__(
        self,
        dataset: DatasetLike[Any],
        batch_size: int | None = 32,
        *,
        to: Callable[[Any], B_co],
        **options: Unpack[Through],
    ) -> None: ...
    @overload
    def __init__(
        self, dataset: DatasetLike[Any], batch_size: int | None = 32, **options: Unpack[InFramework]
    ) -> None: ...
    @overload
    def __init__(self, dataset: DatasetLike[Any], batch_size: int | None = 32, **options: Unpack[OnDevice]) -> None: ...
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
        order: OwnOrder | None = None,
        collate: Callable[[list[Any]], Any] | None = None,
        pack: Pack | None = None,
        cache: Cache | None = None,
        rotation: Rotation | None = None,
        workers: int | Literal["auto"] | Workers = 0,
        prefetch: int = 2,
        in_order: bool = True,
        init: Callable[[], object] | None = None,
        on_error: OnError = "raise",
        max_errors: int | float | None = None,
        quarantine: str | os.PathLike[str] | None = None,
        retry: int | Retry = 0,
        timeout: float | None = None,
        max_deaths: int = 3,
        to: Framework | Callable[[Any], Any] | None = None,
        device: Any = None,
        to_device: Callable[..., Any] | None = None,
        max_on_device: int = 2,
        observe: bool = True,
        watch: bool | Watch = False,
        progress: bool = False,
    ) -> None:
        settings = Settings.checked(
            workers=workers,
            prefetch=prefetch,
            in_order=in_order,
            timeout=timeout,
            max_deaths=max_deaths,
            policy=ErrorPolicy(on_error, max_errors, quarantine),
            retry=retry,
            to=to,
            device=device,
            to_device=to_device,
            max_on_device=max_on_device,
            observe=observe,
            watch=watch,
            progress=progress,
        )
        keep, own = Keeping(cache, rotation), shard_beside(order, shard)
        plan = Plan(0, batch_size, shuffle, seed, drop_last, shard_of(own), keep.times, keep.rotating, even_shards)
        self._session, name = loader_session(dataset, plan, order, collate, init, keep, settings, pack)
        self._about = f"{name}, batch_size={batch_size}, shuffle={shuffle}"
        self._passes = Passes()
        self._shard = OwnShard(own, self._session, dataset, packs_evenly=pack is not None and even_shards)
        self._session.showing.title = f"Loader({self._about})"
        self.dataset, self.batch_size, self.shuffle, self.seed = dataset, batch_size, shuffle, seed
        self.drop_last, self.shard, self.even_shards, self.order = drop_last, shard, even_shards, order
        self.collate, self.pack, self.cache, self.rotation = collate, pack, cache, rotation
        self.workers, self.prefetch, self.in_order, self.init = workers, prefetch, in_order, init
        self.on_error, self.max_errors, self.quarantine = on_error, max_errors, quarantine
        self.retry, self.timeout, self.max_deaths = retry, timeout, max_deaths
        self.to, self.device, self.to_device, self.max_on_device = to, device, to_device, max_on_device
        self.observe, self.watch, self.progress = observe, watch, progress
        self._end_with_me()

    def __iter__(self) -> Iteration[B_co]:
        """Begins the next epoch or, after ``load_state_dict``, the rest of the epoch that was saved."""
        self._session.check_usable()
        self._shard.check()
        if self._passes.is_done_with(self.epoch) and not self._session.mixing.is_endless:
            self._session.go_to(self.epoch + 1)
        self._session.begin_epoch()
        self._passes.current = own = Pass(self.epoch)
        iteration: Iteration[B_co] = Iteration(self, self._session, self._passes, own)
        self._session.showing.show_progress(f"epoch {self.epoch}", iteration)
        return iteration

    def __len__(self) -> int:
        """The number of batches in an epoch. Starts the workers if only they can make the dataset."""
        self._shard.find()
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
        epoch = checked_epoch("set_epoch", epoch)
        if epoch != self.epoch or self._passes.current is not None:
            self._session.go_to(epoch)
            self._passes.current = None

    def state_dict(self) -> dict[str, Any]:
        """The position of the consumer, as a dict that JSON can hold. Prefetched batches do not count as taken."""
        self._shard.find()
        return self._session.state()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continues with the batch after the last one that was taken when ``state`` was saved.

        The number of workers and the backend may differ from then, and so may the number of shards if all shards were
        saved at the same step.

        Raises:
            StateError: The state is damaged, or was saved with another dataset length, batch size, shuffle or seed.
        """
        self._session.check_usable()
        self._shard.find()
        self._session.load(state)
        self._passes.current = None

    def seek(self, epoch: int, step: int = 0) -> None:
        """Makes the batch of that step of that epoch the next one, like loading a state that was saved before it.

        A running loop goes on there if it is a loop over that epoch, and ends if not: the next loop begins there.

        Args:
            epoch: The epoch, from 0 on.
            step: The place of the batch in the epoch, from 0 to ``len(loader) - 1``.

        Raises:
            IndexError: The epoch has no such step.
            ValueError: The epoch or the step is not a whole number of 0 or more, or there is ``Chunks`` or ``pack``.

        Example:
            >>> import numpy as np, stoker
            >>> with stoker.Loader(np.arange(6), batch_size=2) as loader:
            ...     loader.seek(epoch=0, step=1)
            ...     [batch.tolist() for batch in loader]
            [[2, 3], [4, 5]]
        """
        epoch, step = checked_epoch("seek", epoch), checked_step("seek", step)
        self._prepare_to_move("seek")
        self._session.steps.seek(epoch, step)
        self._passes.move()

    def skip(self, batches: int) -> None:
        """Passes over the next batches, without making them, as past a loss spike.

        A running loop goes on behind them; if that is in a later epoch, it ends, and the next loop begins there.

        Raises:
            ValueError: ``batches`` is not a whole number of 0 or more, or the dataset is ``Chunks`` or is empty.

        Example:
            >>> import numpy as np, stoker
            >>> with stoker.Loader(np.arange(10), batch_size=2) as loader:
            ...     for batch in loader:
            ...         print(batch.tolist())
            ...         if batch[0] == 2:
            ...             loader.skip(2)
            [0, 1]
            [2, 3]
            [8, 9]
        """
        count = checked_step("skip", batches)
        self._prepare_to_move("skip")
        self._session.steps.skip(count)
        self._passes.move()

    def indices(self, epoch: int, step: int) -> list[int]:
        """The indices of the samples in the batch of that step of that epoch, in the order of the batch.

        They are computed: nothing is read. Workers are started only if nobody else can tell the dataset's length.

        Raises:
            IndexError: The epoch has no such step.
            ValueError: The epoch or the step is not a whole number of 0 or more, or there is ``Chunks`` or ``pack``.

        Example:
            >>> import numpy as np, stoker
            >>> stoker.Loader(np.arange(1000), batch_size=4, shuffle=True).indices(epoch=3, step=100)
            [650, 364, 778, 987]
        """
        epoch, step = checked_epoch("indices", epoch), checked_step("indices", step)
        check_has_index("indices", self.dataset, self.pack)
        self._shard.find()
        return self._session.steps.indices(epoch, step)

    def set_weights(self, weights: Mapping[str, float] | Sequence[float], *, after: int | None = None) -> int:
        """Gives the sources of a ``Mix`` other weights from some batch on, and ends its schedule there.

        The change is part of ``state_dict()``. The length of an epoch stays as it is.

        Args:
            weights: One for each source, by name or in order.
            after: The number of batches that still come before. None: those that workers have already been given. With
                several shards pass a number, the same in each process at the same step. With ``pack`` leave it out,
                and with several shards call this in each process between the same two loops.

        Returns:
            The number of batches that still come before; with ``pack``, the number of windows.

        Raises:
            TypeError: The dataset is no ``Mix``.
            ValueError: The weights, or ``after``, have a wrong value, or shards that pack are within an epoch.

        Example:
            >>> import stoker
            >>> mix = stoker.Mix({"web": range(10), "code": range(100, 110)}, {"web": 1, "code": 0})
            >>> with stoker.Loader(mix, batch_size=4) as loader:
            ...     loader.set_weights({"web": 0, "code": 1}, after=1)
            ...     [batch.tolist() for batch in loader]
            1
            [[0, 1, 2, 3], [100, 101, 102, 103], [104, 105]]
        """
        self._session.check_usable()
        self._shard.find()
        return self._session.mixing.set_weights(weights, checked_after(after, self._session.shard, self.pack))

    def warm_up(self, seconds: float | None = None) -> None:
        """Starts the workers, and waits until they have prefetched as much as ``prefetch`` allows.

        The next loop begins with these batches.

        Args:
            seconds: The longest time to wait. None: as long as it takes.
        """
        self._session.check_usable()
        self._shard.check()
        self._session.warm_up(seconds)

    def close(self) -> None:
        """Stops the workers and frees all memory except for batches that you still hold. May be called twice."""
        self._passes.current = None
        self._session.close()
        self._finalizer.detach()

    def __repr__(self) -> str:
        length = self._shard.known_length()
        about = self._about if length is None else f"{self._about}, len={length}"
        return f"Loader({about}, epoch={self.epoch}, {self._session.phase()})"

    def __setattr__(self, name: str, value: Any) -> None:
        if "_finalizer" in vars(self):  # it is made
            check_settable(name, value, inspect.signature(Loader).parameters, is_open=type(self) is not Loader)
        super().__setattr__(name, value)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_finalizer"} | {"_passes": Passes()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._end_with_me()

    def _prepare_to_move(self, name: str) -> None:
        check_has_index(name, self.dataset, self.pack)
        self._session.check_usable()
        self._shard.find()

    def _end_with_me(self) -> None:
        """Not when the garbage collector finds its parts, which may know each other."""
        self._finalizer = weakref.finalize(self, self._session.close)
