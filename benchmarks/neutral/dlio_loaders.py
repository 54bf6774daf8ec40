"""Stoker as a data loader of DLIO: the drop-in for torch's `DataLoader`, and `stoker.Loader`.

DLIO finds these classes by their name (`reader.data_loader_classname`). Both read the same files, with the same reader
of DLIO's own, as DLIO's torch loader does.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Iterator
from functools import partial
from typing import Any

from dlio_benchmark.common.enumerations import DataLoaderType, DatasetType, Shuffle
from dlio_benchmark.data_loader.base_data_loader import BaseDataLoader
from dlio_benchmark.data_loader.torch_data_loader import TorchDataset, dlio_sampler
from dlio_benchmark.reader.reader_factory import ReaderFactory

import stoker
from stoker.torch import DataLoader


class _Loader(BaseDataLoader):  # type: ignore[misc]  # DLIO has no types
    """What both have in common. DLIO calls `read` once, then `next` and `finalize` for each epoch."""

    def __init__(self, format_type: Any, dataset_type: Any, epoch_number: int) -> None:
        super().__init__(format_type, dataset_type, epoch_number, DataLoaderType.PYTORCH)
        self._loader: Any = None

    def next(self) -> Iterator[Any]:
        yield from self._loader

    def finalize(self) -> None:
        """Keeps the workers: DLIO calls this after each epoch, and nothing after the last one. They end with it."""

    @property
    def _prefetch(self) -> int:
        """Batches ahead for each worker, worked out of DLIO's total as its torch loader does."""
        return math.ceil(self._args.prefetch_size / self._args.read_threads)


class WithDropIn(_Loader):
    """`stoker.torch.DataLoader`, given what DLIO gives to torch's: its dataset, its sampler, its arguments."""

    def read(self) -> None:
        args = self._args
        dataset = TorchDataset(
            self.format_type, self.dataset_type, self.epoch_number, self.num_samples, args.read_threads, self.batch_size
        )
        sampler = dlio_sampler(
            args.my_rank, args.comm_size, self.num_samples, args.sample_shuffle, args.epochs, args.seed
        )
        self._loader = DataLoader(
            dataset,
            self.batch_size,
            sampler=sampler,
            num_workers=args.read_threads,
            pin_memory=True,
            drop_last=True,
            worker_init_fn=dataset.worker_init,
            multiprocessing_context=args.multiprocessing_context,
            prefetch_factor=self._prefetch,
            persistent_workers=True,
        )


class WithLoader(_Loader):
    """`stoker.Loader`: batches are numpy arrays in shared memory, in an order of Stoker's own."""

    def read(self) -> None:
        args = self._args
        samples = partial(Samples, pickle.dumps(args), self.format_type, self.dataset_type, self.epoch_number)
        self._loader = stoker.Loader(
            samples,
            self.batch_size,
            shuffle=args.sample_shuffle is not Shuffle.OFF,
            seed=args.seed,
            drop_last=True,
            workers=stoker.Processes(args.read_threads, start=args.multiprocessing_context),
            prefetch=self._prefetch,
        )


class Samples:
    """This rank's samples, read by DLIO's own reader; made in each worker.

    Args:
        settings: DLIO's, pickled. To unpickle them makes them those of the process.
    """

    def __init__(self, settings: bytes, format_type: Any, dataset_type: Any, epoch: int) -> None:
        args = pickle.loads(settings)
        self._reader = ReaderFactory.get_reader(format_type, dataset_type, thread_index=0, epoch_number=epoch)
        known = args.train_global_index_map if dataset_type is DatasetType.TRAIN else args.val_global_index_map
        self._indices = list(known)

    def __len__(self) -> int:
        return len(self._indices)

    def __getitem__(self, index: int) -> Any:
        return self._reader.read_index(self._indices[index], step=1)  # DLIO's tracer alone uses the step
