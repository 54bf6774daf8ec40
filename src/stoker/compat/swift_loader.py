"""SwiftLoader's signature and stream, on ``stoker.Loader``. See docs/migrate/swift_loader.md."""

from __future__ import annotations

import functools
import operator
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import stoker
from stoker.compat.swift_options import Options
from stoker.compat.swift_parcel import to_torch, within
from stoker.compat.swift_report import Report, difference
from stoker.compat.swift_share import share

__all__ = ["SwiftLoader"]


class SwiftLoader:
    """Loads a dataset for several consumers, each of which gets a contiguous share of it.

    Made once, handed unstarted to each consumer process (by fork or pickle), and started there. From then on ``for
    batch in loader`` is an epoch of that consumer's share, whose last batch may be short.

    Args:
        dataset_class: A class, or anything else to call, that makes the dataset: an object with ``__getitem__`` and
            ``__len__``, and perhaps ``__getitems__``. Called in each worker.
        dataset_kwargs: What it is called with.
        batch_size: Samples in a batch.
        nb_consumer: Consumers; consumer c of n gets samples c * size up to (c + 1) * size, size = ceil(length / n).
        worker_per_consumer: Worker processes of each consumer.
        shuffle: Shuffle within the share, in another order each epoch, as far as ``nearby_shuffle`` allows.
        **kwargs: Any of the following.

    Keyword Args:
        seed (int): Of the order and of random numbers in workers; also ``seed_number``, ``seed_numer``. By default
            milliseconds of the clock, read when the loader is made, so that all consumers have the same.
        data_queue_size (int): Batches ready ahead: divided by ``worker_per_consumer``, but at least 1, it is
            ``prefetch`` of ``stoker.Loader``. 10.
        message_queue_size (int): Checked, and does nothing: messages are small records in a pipe. 10.
        collate_fn: list of samples -> batch. By default arrays are stacked, numbers become arrays, lists stay lists.
        logger (str | dict): A prefix: the log of consumer c is ``{prefix}_consumer_{c}.log``. Or a dict with any of
            ``path`` (that prefix), ``stdout`` (bool: write there too) and ``level``.
        batch_encoder: batch -> bytes, in the worker. By default batches are not encoded: they lie in shared memory.
        batch_decoder: bytes -> batch, in the consumer; with ``batch_encoder`` only.
        nearby_shuffle (int): No sample moves as many places as that. 5 * batch_size.
        benchmark (bool): Write figures at the end of each epoch and when the loader is closed. True.
        benchmark_file (str): Where to; by default to the log, and nowhere if there is none.
        validate (bool): Make the dataset and its first batch now, in this process, through collate_fn, encoder and
            decoder, and see whether all that workers need can travel. True.
        multithread (bool): Checked, and does nothing: one thread hears all workers. True.
        max_nb_batch_on_device (int): Batches on the device ahead of the consumer. 1.
        max_buffer_size (int): Checked, and does nothing: batches are not rebuilt but read where they lie, so
            ``data_queue_size`` bounds them all. max(2, data_queue_size // worker_per_consumer).

    Raises:
        TypeError: An unknown keyword, or a wrong type.
        ValueError: A wrong value, or an empty dataset; from ``validate`` any error of yours comes as it is.

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
            consumer_index: Which one this is, from 0.
            device: Where to put batches, by torch; by default they stay numpy arrays (or what ``collate_fn`` made).
            to_device: Called in a thread, ahead of the consumer, as ``to_device(batch, device)``, or as
                ``to_device(batch)`` if it takes one argument. By default arrays and tensors are moved, however nested.
        """
        if self._closed:
            raise stoker.ClosedError("this SwiftLoader was closed: make a new one")
        if self._loader is not None:
            raise RuntimeError("this SwiftLoader was started before: make one for each consumer, and start it once")
        if to_device is not None and not callable(to_device):
            raise TypeError(f"to_device={to_device!r}: write a function that takes a batch, or a batch and a device")
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
        """Batches in an epoch of this consumer."""
        return len(self._started())

    def close(self) -> None:
        """Ends the workers, and writes the figures of all epochs. May be called twice."""
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
        return stoker.Loader(dataset, options.batch_size, collate=options.packing or options.collate_fn, **more)

    def _try_out(self) -> None:
        """Makes the first batch in this process, and packs the workers' job for its journey."""
        with self._loader_over((0, 1), to=self._options.decoding) as trial:
            next(iter(trial))
        self._loader_of(0, None, None).close()


def _checked_consumer(index: Any, count: int) -> int:
    if isinstance(index, bool) or not hasattr(index, "__index__"):
        raise TypeError(f"consumer_index={index!r}: write a whole number, 0 for the first consumer")
    if not 0 <= operator.index(index) < count:
        raise ValueError(f"consumer_index={index}: with nb_consumer={count}, write a number from 0 to {count - 1}")
    return operator.index(index)
