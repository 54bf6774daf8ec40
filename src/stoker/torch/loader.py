"""The drop-in itself."""

from __future__ import annotations

import contextlib
import functools
import os
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import torch.utils.data
from torch.utils.data import _DatasetKind

import stoker
from stoker.torch import draws
from stoker.torch.beginning import generators_of
from stoker.torch.figures import Figures
from stoker.torch.in_process import InProcess
from stoker.torch.in_workers import InWorkers
from stoker.torch.links import has_links
from stoker.torch.progress import Progress, Snapshot
from stoker.torch.ranks import rank_of
from stoker.torch.retrying import checked_retry
from stoker.torch.sampling import state_before
from stoker.torch.seals import sealed
from stoker.torch.states import SavedState, read_state
from stoker.torch.work import dataset_state
from stoker.torch.workers import number_of

T_co = TypeVar("T_co", covariant=True)


class DataLoader(torch.utils.data.DataLoader[T_co]):  # type: ignore[misc]  # mypy does not look at torch
    """Torch's ``DataLoader`` on Stoker's workers: the same arguments, the same batches in the same order.

    Beyond torch's, it survives the death of workers, and ``state_dict()`` / ``load_state_dict()`` resume in the middle
    of an epoch as torchdata's ``StatefulDataLoader`` does.

    The arguments up to ``in_order`` are those of ``torch.utils.data.DataLoader``, and mean the same.

    Args:
        snapshot_every_n_steps: As in torchdata's ``StatefulDataLoader``: the state of datasets and samplers that have
            one is asked for every so many batches.
        seed: Seeds ``random``, ``numpy.random`` and torch in workers for each batch anew, so that a batch is the same
            for any number of workers and after a worker was replaced. None: each worker is seeded once, as in torch.
        recover: True: a worker that is killed is replaced, and its batches are made again. False: a ``RuntimeError``,
            as in torch.
        retry: How often a sample whose reading raised an ``OSError`` is read again, with the same random numbers: a
            number, or ``stoker.Retry(times, backoff=..., on=...)``. Not for an ``IterableDataset``.
        workers: ``stoker.Ray(n, ...)``: the workers are on a Ray cluster, and ``num_workers`` is their number. None:
            ``num_workers`` processes on this machine.
        progress: True: show a bar with batches a second, the share of the time that you wait for them, and the time
            left, as ``stoker.Loader`` does; on rank 0 only.
        watch: True, or ``stoker.Watch(host=..., port=...)``: show what the workers do on a live page, from the first
            loop until the loader is gone. The URL is printed, and is ``loader.watch_url``.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument has a wrong value; ``watch`` is given, and there are no workers to watch; or ``retry``
            is given, and the dataset is iterable.

    Example:
        >>> import torch
        >>> from stoker.torch import DataLoader
        >>> [batch.tolist() for batch in DataLoader(torch.arange(5), batch_size=2)]
        [[0, 1], [2, 3], [4]]
    """

    _iterator: Any

    def __init__(
        self,
        dataset: torch.utils.data.Dataset[T_co] | stoker.Dataset[T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
        snapshot_every_n_steps: int | None = 1,
        seed: int | None = None,
        recover: bool = True,
        retry: int | stoker.Retry = 0,
        workers: stoker.Ray | None = None,
        progress: bool = False,
        watch: bool | stoker.Watch = False,
    ) -> None:
        self.snapshot_every_n_steps = snapshot_every_n_steps
        self.seed = seed
        self.recover = recover
        self.retry = retry
        self.workers = workers
        self.progress = progress
        self.watch = watch
        if workers is not None:
            num_workers = number_of(workers, num_workers, multiprocessing_context)
        self._epoch = 0  # that comes next, or runs
        self._position: Progress | InProcess | None = None  # of the iterator that was made last
        self._saved: SavedState | None = None  # that the next iterator begins with
        self._loaded: dict[str, Any] | None = None  # the same as it was loaded
        self._figures = Figures()
        self._display = stoker.Display(self._figures, progress=progress, watch=watch)
        if watch and not num_workers:
            raise ValueError("watch with num_workers=0: torch's own loop makes the batches; pass num_workers=1 or more")
        self._trace: stoker.Trace | None = None  # which each new iterator is added to
        self._stream: weakref.ref[stoker.Stream[Any]] | None = None  # of the iterator that was made last
        super().__init__(
            dataset,
            batch_size,
            shuffle,
            sampler,
            batch_sampler,
            num_workers,
            collate_fn,
            pin_memory,
            drop_last,
            timeout,
            worker_init_fn,
            multiprocessing_context,
            generator,
            prefetch_factor=prefetch_factor,
            persistent_workers=persistent_workers,
            pin_memory_device=pin_memory_device,
            in_order=in_order,
        )
        self._retry = checked_retry(retry, is_iterable=self._dataset_kind == _DatasetKind.Iterable)

    def __iter__(self) -> Any:
        if self._iterator is not None and self._saved is None:
            self._epoch += 1
            self._iterator._reset(self)
            iterator = self._iterator
        else:
            iterator = self._get_iterator()
            if self.persistent_workers and self.num_workers > 0:
                self._iterator = iterator
        # Without workers, the dataset is asked for its state when ours is wanted. With workers, those must be free to
        # end when the iterator is forgotten.
        self._position = iterator.progress if self.num_workers else iterator
        if self.progress and rank_of(self)[0] == 0:
            total = functools.partial(_length, self._index_sampler, self._dataset_kind)
            self._display.begin(f"epoch {self._epoch}", iterator, done=iterator.progress.yielded, total=total)
        return iterator

    def state_dict(self) -> dict[str, Any]:
        """Where the consumer is, in torchdata's form. Cheap, and starts nothing.

        It can be saved with ``torch.save``, and loaded with ``torch.load`` as it is.
        """
        if self._loaded is not None:
            return self._loaded
        return (self._unbegun() if self._position is None else self._position).state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The next loop goes on with the batch after the last one that was taken when ``state`` was saved.

        Also states of torchdata's ``StatefulDataLoader`` are understood. Of a map-style dataset, the number of workers
        may be another one.

        Raises:
            StateError: It is no such state.
        """
        self._iterator = self._position = self._saved = self._loaded = None
        if state:
            self._saved, self._loaded = read_state(state), state
            self._epoch = self._saved.own.get("epoch", self._epoch)

    def stats(self) -> stoker.Stats:
        """Counts and times of the workers that run, or ran last, and a sentence that says who waited for whom.

        ``samples`` are taken to be ``batch_size`` in each batch, and 0 where a ``batch_sampler`` chooses them. Small
        batches that were made together are one unit of work at their stations. Without workers, only how long it took
        to make batches is measured.
        """
        return self._figures.stats()

    @property
    def watch_url(self) -> str | None:
        """Where the live page is, from the first loop on; None without ``watch``."""
        return self._display.watch_url

    def report(self, path: str | os.PathLike[str] | None = None) -> None:
        """Says where the time went: the sentence of ``stats().diagnosis``, then tables of stations and workers.

        It is about the workers of the last loop, or, with ``persistent_workers=True``, of all loops.

        Args:
            path: An HTML file to write it into, with pictures; it needs no network to be looked at, and one that is
                there is replaced. None: it is printed.

        Raises:
            RuntimeError: No workers have worked yet, and a file is to be written.
            OSError: The file cannot be written.
        """
        if path is None:
            self.stats().report()
        else:
            self._figures.report(path)

    def trace(self, path: str | os.PathLike[str]) -> stoker.Trace:
        """Writes a trace of the running epoch's last batches for Perfetto; in a ``with`` statement, of all in it.

        Quick batches are made several at a time, and are one span together. ``stoker.merge_traces`` puts it beside what
        torch's profiler has exported, on one axis of time.

        Raises:
            OSError: The file cannot be written.
            ValueError: There are no workers: num_workers=0.
        """
        if not self.num_workers:
            raise ValueError("num_workers=0: torch's own loop makes the batches, and there is nothing to trace")
        self._trace = trace = stoker.Trace(path)
        stream = None if self._stream is None else self._stream()
        if stream is not None:
            stream.trace(trace)
        trace.write()
        return trace

    def __repr__(self) -> str:
        """Without what is in the dataset. The length is asked of the sampler, and left out where it does not tell."""
        parts = [type(self.dataset).__name__, f"batch_size={self.batch_size}"]
        with contextlib.suppress(Exception):  # of a sampler's own code
            length = _length(self._index_sampler, self._dataset_kind)
            parts += [] if length is None else [f"len={length}"]
        workers = f"num_workers={self.num_workers}" if self.workers is None else f"workers={self.workers!r}"
        return f"DataLoader({', '.join(parts)}, epoch={self._epoch}, {workers})"

    @functools.cached_property
    def _has_links(self) -> bool:
        return has_links(self.dataset, self.collate_fn, self.worker_init_fn)

    def _unbegun(self) -> Progress:
        """Where it is before the first loop, which is as it would be if it began now."""
        generators, is_iterable = generators_of(self), self._dataset_kind == _DatasetKind.Iterable
        snapshot = Snapshot(sampler={} if is_iterable else state_before(self._index_sampler))
        if not self.num_workers and not is_iterable:
            snapshot.workers[0] = sealed(dataset_state(self._dataset_kind, None, self.dataset))
        before = draws.captured(generators)
        return Progress(
            int(self.num_workers), self._epoch, is_iterable, None, None, None, before, generators, 1, snapshot
        )

    def __getstate__(self) -> dict[str, Any]:
        """Copies begin anew: an iterator cannot be copied."""
        figures = Figures()
        display = stoker.Display(figures, progress=self.progress, watch=self.watch)
        fresh = {"_position": None, "_iterator": None, "_trace": None, "_stream": None}
        return {**vars(self), **fresh, "_figures": figures, "_display": display}

    def _get_iterator(self) -> InProcess | InWorkers:
        saved, self._saved, self._loaded = self._saved, None, None
        if saved is not None and saved.finished:
            return self._turned(saved)
        if saved is None and self._position is not None:
            self._epoch += 1
        if not self.num_workers:
            return InProcess(self, saved)
        if self.workers is None:
            self.check_worker_number_rationality()
        return InWorkers(self, saved)

    def _turned(self, saved: SavedState) -> InProcess | InWorkers:
        """The epoch after the one at whose end the state was saved."""
        if self.num_workers and self.persistent_workers and saved.num_workers == self.num_workers:
            iterator = InWorkers(self, saved)
            deque(iterator, maxlen=0)  # so that workers come to the end as they have before
            self._epoch += 1
            iterator._reset(self, saved=saved.of_next_epoch(draws_seed=False))
            return iterator
        self._epoch += 1
        turned = saved.of_next_epoch(draws_seed=True)
        return InWorkers(self, turned) if self.num_workers else InProcess(self, turned)


def _length(index_sampler: Any, kind: int) -> int | None:
    """Batches in an epoch; None where nobody knows."""
    if kind == _DatasetKind.Iterable:  # whose length torch would compare with what comes, once it was asked for
        return None
    try:
        return len(index_sampler)
    except (TypeError, NotImplementedError):
        return None
