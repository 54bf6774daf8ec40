"""``DataLoader``, as PyLoader has it."""

from __future__ import annotations

import inspect
import os
from typing import Any

import stoker
from stoker.compat.arguments import check_flag, checked_count
from stoker.compat.pyloader.chunks import Chunks, folder_of, names_in
from stoker.compat.pyloader.parts import DataCollator, DataReader, Dataset, checked_seed
from stoker.compat.pyloader.run import Run
from stoker.compat.pyloader.work import Work

_PARTS = (
    ("datareader", DataReader, "read_file", "path"),
    ("dataset", Dataset, "batch_encode", "batch_data"),
    ("datacollator", DataCollator, "collate_batch", "batch_data"),
)


class DataLoader:
    """Batches of a dataset that is larger than memory: worker processes read its chunk files, encode and collate.

    ``for batch in loader`` goes through all epochs, and each such loop begins from the start. After a ``break``,
    ``get_batch`` continues where the loop was. There is no ``len``, since the number of samples in a file is not known
    before it is read.

    Args:
        datareader: Reads a file, and has the batch size.
        dataset: Encodes a batch.
        datacollator: Makes arrays or tensors of an encoded batch.
        data_dir: The folder with the chunk files, also in folders below it, and with no other files. Hidden files are
            left out. They are read in the order of their names.
        num_epoch: The number of times that all files are read.
        max_queue_size: The largest number of chunks in memory, 1 or more, including the chunk of the batch that you
            got last. With 1 there are no workers: each file is read when the one before it is used up.
        shuffle: Shuffle the files, in another order each epoch. The ``datareader`` shuffles the samples within a file.
        random_seed: Seeds the order of the files, and the generators of ``random``, ``numpy.random`` and torch that
            reader, dataset and collator use.

    Raises:
        TypeError: A wrong type, or a part that lacks its method.
        ValueError: A wrong value.
        OSError: The folder does not exist, or holds no files. An error of your own parts is raised as it is, in place
            of the batches of its file; ``get_batch`` continues with the batches after it.

    Example:
        >>> import pathlib, tempfile
        >>> from stoker.compat.pyloader import DataLoader, Dataset, JsonLineDataReader, NumpyDataCollator
        >>> class Doubled(Dataset):
        ...     def batch_encode(self, batch_data):
        ...         return {"x": [2 * x for x in batch_data["x"]]}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pathlib.Path(folder, "chunk.jsonl").write_text('{"x": 1}\\n{"x": 2}\\n{"x": 3}\\n')
        ...     with DataLoader(JsonLineDataReader(2), Doubled(), NumpyDataCollator(), folder) as loader:
        ...         [batch["x"].tolist() for batch in loader]
        [[2, 4], [6]]
    """

    def __init__(
        self,
        datareader: DataReader,
        dataset: Dataset,
        datacollator: DataCollator,
        data_dir: str | os.PathLike[str],
        num_epoch: int = 1,
        max_queue_size: int = 10,
        shuffle: bool = False,
        random_seed: int = 42,
    ) -> None:
        for part, (name, base, method, argument) in zip((datareader, dataset, datacollator), _PARTS, strict=True):
            _check_part(name, part, base, method, argument)
        if not hasattr(datareader, "batch_size"):
            raise TypeError(f"{type(datareader).__name__} has no batch_size: call super().__init__ in its __init__")
        check_flag("shuffle", shuffle)
        num_epoch = checked_count("num_epoch", num_epoch)
        self._seed = checked_seed(random_seed)
        self._queue = checked_count("max_queue_size", max_queue_size)
        folder = folder_of(data_dir)
        self._chunks = Chunks(names_in(folder), num_epoch, shuffle, self._seed)
        self._work = Work(folder, datareader, dataset, datacollator)
        self._run: Run | None = None
        self._closed = False

    def __iter__(self) -> Run:
        """Begins with the first epoch, and ends a loop that is running."""
        if self._run is not None:
            self._run.close()
        self._run = self._begun()
        return self._run

    def get_batch(self) -> Any:
        """Returns the next batch of the running loop, or begins one. Returns None when all epochs are over."""
        if self._run is None:
            self._run = self._begun()
        return next(self._run, None)

    def get_epoch(self) -> int:
        """The epoch of the batch that you got last, from 0. Before the first batch, 0."""
        return 0 if self._run is None else self._run.epoch

    def close(self) -> None:
        """Stops the workers. May be called twice."""
        self._closed = True
        if self._run is not None:
            self._run.close()

    def __enter__(self) -> DataLoader:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _begun(self) -> Run:
        if self._closed:
            raise stoker.ClosedError("this DataLoader was closed: make a new one")
        return Run(self._work, self._chunks, self._queue, self._seed)


def _check_part(name: str, part: Any, base: type, method: str, argument: str) -> None:
    if not isinstance(part, base):
        hint = ": make an object of it" if isinstance(part, type) and issubclass(part, base) else ""
        raise TypeError(f"{name}={part!r}{hint or f': pass an object of a class that inherits from {base.__name__}'}")
    found = getattr(part, method)
    remedy = f"define {method}(self, {argument})"
    if getattr(found, "__func__", None) is getattr(base, method):
        raise NotImplementedError(f"{type(part).__name__} has no {method}: {remedy}")
    if not _takes_one(found):
        raise TypeError(f"{type(part).__name__}.{method} cannot be called with one argument: {remedy}")


def _takes_one(function: Any) -> bool:
    try:
        inspect.signature(function).bind(None)
    except TypeError:
        return False
    except ValueError:  # compiled, and does not say
        return True
    return True
