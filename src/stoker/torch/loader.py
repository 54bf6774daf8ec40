"""The drop-in itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import torch.utils.data

from stoker.torch import draws
from stoker.torch.beginning import first_draws, generators_of
from stoker.torch.in_process import InProcess
from stoker.torch.in_workers import InWorkers
from stoker.torch.progress import Progress, Snapshot
from stoker.torch.states import SavedState, read_state

T = TypeVar("T")


class DataLoader(torch.utils.data.DataLoader[T]):  # type: ignore[misc]  # mypy does not look at torch
    """Torch's ``DataLoader`` on Stoker's workers: the same arguments, the same batches in the same order.

    Beyond torch's, it survives the death of workers, and ``state_dict()`` / ``load_state_dict()`` resume in the middle
    of an epoch as torchdata's ``StatefulDataLoader`` does.

    Args:
        dataset, batch_size, shuffle, sampler, batch_sampler, num_workers, collate_fn, pin_memory, drop_last, timeout,
            worker_init_fn, multiprocessing_context, generator, prefetch_factor, persistent_workers, pin_memory_device,
            in_order: As in ``torch.utils.data.DataLoader``.
        snapshot_every_n_steps: As in torchdata's ``StatefulDataLoader``: the state of datasets and samplers that have
            one is asked for every so many batches.
        seed: Seeds ``random``, ``numpy.random`` and torch in workers for each batch anew, so that a batch is the same
            for any number of workers and after a worker was replaced. None: each worker is seeded once, as in torch.
        recover: True: a worker that is killed is replaced, and its batches are made again. False: a ``RuntimeError``,
            as in torch.

    Example:
        >>> import torch
        >>> from stoker.torch import DataLoader
        >>> [batch.tolist() for batch in DataLoader(torch.arange(5), batch_size=2)]
        [[0, 1], [2, 3], [4]]
    """

    _iterator: Any

    def __init__(
        self,
        dataset: Any,
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
    ) -> None:
        self.snapshot_every_n_steps = snapshot_every_n_steps
        self.seed = seed
        self.recover = recover
        self._epoch = 0  # that comes next, or runs
        self._position: Progress | InProcess | None = None  # of the iterator that was made last
        self._saved: SavedState | None = None  # that the next iterator begins with
        self._loaded: dict[str, Any] | None = None  # the same as it was loaded
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

    def _unbegun(self) -> Progress:
        """Where it is before the first loop, which is as it would be if it began now."""
        before = first_draws(self)
        return Progress(self.num_workers, self._epoch, None, None, None, before, generators_of(self), 1, Snapshot())

    def __getstate__(self) -> dict[str, Any]:
        """Copies begin anew: an iterator cannot be copied."""
        return {**vars(self), "_position": None, "_iterator": None}

    def _get_iterator(self) -> InProcess | InWorkers:
        saved, self._saved, self._loaded = self._saved, None, None
        if saved is not None and saved.finished:
            draws.set_all(generators_of(self), saved.own.get("generators") or ())
            self._epoch += 1
            saved = None
        elif saved is None and self._position is not None:
            self._epoch += 1
        if not self.num_workers:
            return InProcess(self, saved)
        self.check_worker_number_rationality()
        return InWorkers(self, saved)
