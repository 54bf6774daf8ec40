"""What a dataset is to a type checker."""

from __future__ import annotations

from typing import Protocol, TypeVar

S_co = TypeVar("S_co", covariant=True)


class Dataset(Protocol[S_co]):
    """What a ``Loader`` reads: any object that gives a sample for each index below its length.

    For annotations only: a dataset need not inherit from it, as lists, arrays and torch's datasets do not. One that has
    ``__getitems__(indices)``, too, is asked for all samples of a batch at once.

    Example:
        >>> import stoker
        >>> def halved(dataset: stoker.Dataset[float]) -> list[float]:
        ...     return [dataset[i] / 2 for i in range(len(dataset))]
        >>> halved([1.0, 3.0])
        [0.5, 1.5]
    """

    def __getitem__(self, index: int, /) -> S_co:
        """The sample of that index, from 0 to ``len(dataset) - 1``."""

    def __len__(self) -> int:
        """The number of samples."""
