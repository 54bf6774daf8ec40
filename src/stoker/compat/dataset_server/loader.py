"""``DataLoader``, as dataset_server has it."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from time import monotonic, sleep
from typing import Any

import stoker
from stoker.compat.dataset_server.batch import Limit
from stoker.compat.dataset_server.options import Options
from stoker.compat.dataset_server.settings import cache_of, rotation_of


class DataLoader:
    """Serves a dataset's batches from worker processes, each of which makes the dataset for itself.

    The workers start with the loader, and prefetch from then on. ``for batch in loader`` is an epoch, whose last batch
    may be short; the next loop is the next epoch.

    Args:
        dataset_class: A class or function that makes the dataset: an object with ``__getitem__`` and ``__len__``. It is
            called in each worker.
        dataset_params: The keyword arguments that it is called with.
        batch_size: The number of samples in a batch.
        nb_worker: The number of worker processes, 1 or more.
        max_minibatch_length: The largest number of bytes of a batch; a larger batch is a ``ValueError``. None: no
            limit, since the memory for batches grows with them.
        max_queue_size: The largest number of batches that are ready in each worker.
        prefetch_time: The number of seconds that the constructor waits while workers prefetch.
        shuffle: Shuffle the samples, in another order each epoch.
        device: The torch device for batches. None: they stay numpy arrays, or the tensors that samples hold.
        pin_memory: Batches are tensors in pinned memory. If torch finds no CUDA device, they are in ordinary memory,
            and a warning says so.
        gpu_indices: The GPU that each worker sees: ``CUDA_VISIBLE_DEVICES``, set before the dataset is imported.
        nearby_shuffle: If more than 0, shuffled samples stay less than this many positions from their own.
        cache_setting: Keeps samples on disk: a dict with ``prefix`` (the folder is ``{prefix}_cache``) and
            ``update_frequency``, the number of epochs after which samples are made again, 2 or more, or
            ``float("inf")`` for never.
        rotation_setting: Uses each sample several times in an epoch, which becomes that much longer: a dict with
            ``medium`` ("memory" or "disk"), ``rotation`` (how many times), ``size`` (the number of samples that rotate
            at the same time; in memory, by default all) and, for the disk, ``prefix``, whose folder is used.
        use_threading: A thread of this process talks to the workers, and has batches ready ahead of the consumer.
        collate_fn: A function that takes a list of samples and returns the batch. By default ``stoker.collate``.

    Raises:
        TypeError: A wrong type.
        ValueError: A wrong value or setting. Errors of the dataset are raised as they are.

    Example:
        >>> import numpy as np
        >>> from stoker.compat.dataset_server import DataLoader
        >>> with DataLoader(np.arange, {"start": 0, "stop": 5}, batch_size=2, nb_worker=1) as loader:
        ...     [batch.tolist() for batch in loader]
        [[0, 1], [2, 3], [4]]
    """

    def __init__(
        self,
        dataset_class: Callable[..., Any],
        dataset_params: Mapping[str, Any],
        batch_size: int,
        nb_worker: int,
        max_minibatch_length: int | None = None,
        max_queue_size: int = 20,
        prefetch_time: float | None = None,
        shuffle: bool = False,
        device: Any = None,
        pin_memory: bool = False,
        gpu_indices: Sequence[int] | None = None,
        nearby_shuffle: int = 0,
        cache_setting: Mapping[str, Any] | None = None,
        rotation_setting: Mapping[str, Any] | None = None,
        use_threading: bool = False,
        collate_fn: Callable[[list[Any]], Any] | None = None,
    ) -> None:
        options = Options(
            dataset_class=dataset_class,
            dataset_params=dataset_params,
            batch_size=batch_size,
            nb_worker=nb_worker,
            max_minibatch_length=max_minibatch_length,
            max_queue_size=max_queue_size,
            prefetch_time=prefetch_time,
            shuffle=shuffle,
            device=device,
            pin_memory=pin_memory,
            gpu_indices=gpu_indices,
            nearby_shuffle=nearby_shuffle,
            use_threading=use_threading,
            collate_fn=collate_fn,
        )
        if cache_setting is not None and rotation_setting is not None:
            raise ValueError(
                "cache_setting and rotation_setting do not go together. Where the disk holds the whole dataset, pass "
                "cache_setting alone, which spares making a sample for whole epochs; else rotation_setting alone"
            )
        if pin_memory and not options.can_pin:
            message = "pin_memory=True: torch finds no CUDA device, so batches are tensors in ordinary memory"
            warnings.warn(message, RuntimeWarning, stacklevel=2)
        self._limit = None if options.max_minibatch_length is None else Limit(options.max_minibatch_length)
        self._loader: stoker.Loader[Any] = stoker.Loader(
            functools.partial(dataset_class, **dataset_params),
            options.batch_size,
            shuffle=options.order,
            shard=(0, 1),  # each process has all, as with dataset_server
            workers=options.workers,
            prefetch=options.max_queue_size,
            collate=collate_fn,
            cache=cache_of(cache_setting),
            rotation=rotation_of(rotation_setting),
            **options.route,
        )
        try:
            self._start(prefetch_time or 0)
        except BaseException:
            self._loader.close()
            raise

    def __iter__(self) -> Iterator[Any]:
        """Begins an epoch."""
        # Not a generator: whoever goes on after an error gets the next batch.
        return iter(self._loader) if self._limit is None else map(self._limit, self._loader)

    def __len__(self) -> int:
        """The number of batches in an epoch."""
        return len(self._loader)

    def close(self) -> None:
        """Stops the workers. May be called twice."""
        self._loader.close()

    def __enter__(self) -> DataLoader:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _start(self, seconds: float) -> None:
        """Starts the workers, which prefetch for so long before anything is asked for."""
        len(self._loader)  # when the dataset has been made, the time begins
        end = monotonic() + seconds
        self._loader.warm_up(seconds)
        sleep(max(0.0, end - monotonic()))  # though all may be ready by now: they are to be waited for
