"""``SwiftLoader``: made once, and started by each of its consumers."""

from __future__ import annotations

import functools
import operator
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import stoker
from stoker.compat.swift_loader.options import Options
from stoker.compat.swift_loader.parcel import to_torch, within
from stoker.compat.swift_loader.report import Report, difference
from stoker.compat.swift_loader.share import share


class SwiftLoader:
    """Loads a dataset for several consumers, each of which gets a contiguous share of it.

    Make it once, hand it unstarted to each consumer process (by fork or pickle), and start it there. From then on
    ``for batch in loader`` is an epoch of that consumer's share, whose last batch may be short.

    Args:
        dataset_class: A class or function that makes the dataset: an object with ``__getitem__`` and ``__len__``, and
            optionally ``__getitems__``. It is called in each worker.
        dataset_kwargs: The keyword arguments that it is called with.
        batch_size: The number of samples in a batch.
        nb_consumer: The number of consumers. Consumer c of n gets the samples from c * size up to (c + 1) * size, where
            size = ceil(length / n).
        worker_per_consumer: The number of worker processes of each consumer.
        shuffle: Shuffle within the share, in another order each epoch, as far as ``nearby_shuffle`` allows.
        **kwargs: Any of the following.

    Keyword Args:
        seed (int): Seeds the shuffle order and all random generators in workers; also called ``seed_number`` and
            ``seed_numer``. By default the milliseconds of the clock when the loader is made, so that all consumers have
            the same seed.
        data_queue_size (int): The number of batches that are made ahead. Divided by ``worker_per_consumer``, but at
            least 1, it is ``prefetch`` of ``stoker.Loader``. 10.
        message_queue_size (int): Checked, but has no effect: messages are small records in a pipe. 10.
        collate_fn: A function that takes a list of samples and returns the batch. By default ``stoker.collate``.
        logger (str | dict): A prefix: the log of consumer c is ``{prefix}_consumer_{c}.log``. Or a dict with any of
            ``path`` (that prefix), ``stdout`` (bool: log there too) and ``level``.
        batch_encoder: A function that turns a batch into bytes, called in the worker. By default batches are not
            encoded, since they are in shared memory.
        batch_decoder: A function that turns these bytes into a batch, called in the consumer.
        nearby_shuffle (int): Each sample stays less than this many positions from its own. 5 * batch_size.
        benchmark (bool): Write figures at the end of each epoch and when the loader is closed. True.
        benchmark_file (str): The file for these figures. By default the log, if there is one.
        validate (bool): Make the dataset and its first batch now, in this process, through collate_fn, encoder and
            decoder, and check that all that workers need can be pickled. True.
        multithread (bool): Checked, but has no effect: one thread listens to all workers. True.
        max_nb_batch_on_device (int): The number of batches on the device ahead of the consumer. 1.
        max_buffer_size (int): Checked, but has no effect: batches are read where they are, so ``data_queue_size``
            bounds them all. max(2, data_queue_size // worker_per_consumer).

    Raises:
        TypeError: An unknown keyword, or a wrong type.
        ValueError: A wrong value, or an empty dataset. With ``validate``, errors of your own code are raised as they
            are.

    Example:
        >>> import numpy as np
        >>> from stoker.compat.swift_loader import SwiftLoader
        >>> loader = SwiftLoader(
        ...     np.arange, {"start": 0, "stop": 10}, 2, nb_consumer=2, worker_per_consumer=1, shuffle=False
        ... )
        >>> loader.start(1)  # the second of two consumers
        >>> with loader:
        ...     [batch.tolist() for batch in loader]
        [[5, 6], [7, 8], [9]]
    """

    def __init__(
        self,
        dataset_class: Callable[..., Any],
        dataset_kwargs: Mapping[str, Any],
        batch_size: int,
        nb_consumer: int,
        worker_per_consumer: int,
        shuffle: bool = True,
        **kwargs: Any,
    ) -> None:
        self._options = Options.of(
            dataset_class=dataset_class,
            dataset_kwargs=dataset_kwargs,
            batch_size=batch_size,
            nb_consumer=nb_consumer,
            worker_per_consumer=worker_per_consumer,
            shuffle=shuffle,
            **kwargs,
        )
        self._loader: stoker.Loader[Any] | None = None
        self._report: Report | None = None
        self._closed = False
        if self._options.validate:
            self._try_out()

    def start(self, consumer_index: int, device: Any = None, to_device: Callable[..., Any] | None = None) -> None:
        """Starts the workers of one consumer. To be called once, in the process that consumes.

        Args:
            consumer_index: The number of this consumer, from 0.
            device: The torch device for batches. None: they stay numpy arrays, or what ``collate_fn`` returned.
            to_device: A function that is called in a thread, ahead of the consumer, as ``to_device(batch, device)``, or
                as ``to_device(batch)`` if it takes one argument. By default all arrays and tensors of the batch are
                moved.
        """
        if self._closed:
            raise stoker.ClosedError("this SwiftLoader was closed: make a new one")
        if self._loader is not None:
            raise RuntimeError("this SwiftLoader was started before: make one for each consumer, and start it once")
        if to_device is not None and not callable(to_device):
            raise TypeError(f"to_device={to_device!r}: pass a function that takes a batch, or a batch and a device")
        consumer = _checked_consumer(consumer_index, self._options.nb_consumer)
        loader = self._loader_of(consumer, device, to_device)
        try:
            batches = len(loader)  # so that the workers start now
            report = Report(self._options, consumer)
        except BaseException:
            loader.close()
            raise
        self._loader, self._report = loader, report
        weakref.finalize(self, report.log.close)
        report.log.write(f"consumer {consumer}: {batches} batches an epoch, workers {loader.worker_pids}")

    def __iter__(self) -> Iterator[Any]:
        """Begins an epoch."""
        return self._epoch(self._started())

    def __len__(self) -> int:
        """The number of batches in an epoch of this consumer."""
        return len(self._started())

    def close(self) -> None:
        """Stops the workers, and writes the figures of all epochs. May be called twice."""
        closed, self._closed = self._closed, True
        if self._loader is None or self._report is None or closed:
            return
        try:
            self._loader.close()
            stats = self._loader.stats()
            self._report.write("all", self._report.figures(stats) | {"diagnosis": stats.diagnosis})
        finally:
            self._report.log.close()

    def __enter__(self) -> SwiftLoader:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _started(self) -> stoker.Loader[Any]:
        if self._loader is None:
            raise RuntimeError("this SwiftLoader was not started: call start(consumer_index) in this process first")
        return self._loader

    def _epoch(self, loader: stoker.Loader[Any]) -> Iterator[Any]:
        report = self._report
        assert report is not None
        before = report.figures(loader.stats())
        # No variable holds a batch here: it would keep a slot from being used again.
        yield from loader if self._options.packing is None else map(report.opened, loader)
        report.write(loader.epoch - 1, difference(report.figures(loader.stats()), before))

    def _loader_of(self, consumer: int, device: Any, to_device: Callable[..., Any] | None) -> stoker.Loader[Any]:
        options = self._options
        if to_device is None and device is not None and options.decoding is not None:
            to_device = to_torch  # Stoker's own way to torch would come before the decoder
        if to_device is not None and options.packing is not None:
            to_device = within(to_device)
        return self._loader_over(
            (consumer, options.nb_consumer),
            to="torch" if device is not None and to_device is None else options.decoding,
            shuffle=options.window,
            seed=options.seed_of(consumer),
            workers=stoker.Processes(options.worker_per_consumer),
            prefetch=options.prefetch,
            device=device,
            to_device=to_device,
            max_on_device=options.max_nb_batch_on_device,
        )

    def _loader_over(self, part: tuple[int, int], **more: Any) -> stoker.Loader[Any]:
        options = self._options
        dataset = functools.partial(share, options.dataset_class, options.dataset_kwargs, *part)
        collate = options.packing or options.collate_fn
        return stoker.Loader(dataset, options.batch_size, shard=(0, 1), collate=collate, **more)  # it is a part already

    def _try_out(self) -> None:
        """Makes the first batch in this process, and packs the workers' job for its journey."""
        with self._loader_over((0, 1), to=self._options.decoding) as trial:
            next(iter(trial))
        self._loader_of(0, None, None).close()


def _checked_consumer(index: Any, count: int) -> int:
    if isinstance(index, bool) or not hasattr(index, "__index__"):
        raise TypeError(f"consumer_index={index!r}: pass a whole number, 0 for the first consumer")
    if not 0 <= operator.index(index) < count:
        raise ValueError(f"consumer_index={index}: with nb_consumer={count}, pass a number from 0 to {count - 1}")
    return operator.index(index)
