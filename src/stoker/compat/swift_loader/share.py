"""A consumer's share of a dataset: one contiguous block, as made in each of its workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any


def share(dataset_class: Callable[..., Any], dataset_kwargs: Mapping[str, Any], consumer: int, consumers: int) -> Any:
    """Makes the dataset, and gives what one of its consumers is to get of it."""
    dataset = dataset_class(**dataset_kwargs)
    for method in ("__getitem__", "__len__"):
        if not hasattr(type(dataset), method):
            raise TypeError(f"dataset_class made a {type(dataset).__name__} that has no {method}: give it one")
    if not len(dataset):
        raise ValueError(f"the {type(dataset).__name__} that dataset_class made is empty: look at dataset_kwargs")
    return dataset if consumers == 1 else Share(dataset, consumer, consumers)


class Share:
    """Samples ``consumer * size`` up to ``(consumer + 1) * size``, where size is length / consumers, rounded up.

    So the last consumers may have fewer samples, or none.
    """

    def __init__(self, dataset: Any, consumer: int, consumers: int) -> None:
        size = -(-len(dataset) // consumers)
        self._dataset = dataset
        self._many = getattr(dataset, "__getitems__", None)
        self._offset = min(consumer * size, len(dataset))
        self._length = min(size, len(dataset) - self._offset)

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> Any:
        return self._dataset[self._offset + index]

    def __getitems__(self, indices: Sequence[int]) -> Any:
        """A batch at a time also where the dataset has no such method: a call a sample would be felt."""
        offset, dataset = self._offset, self._dataset
        if self._many is not None:
            return self._many([offset + index for index in indices])
        left = iter(indices)
        try:
            return [dataset[offset + index] for index in left]
        except Exception as error:
            failed = indices[len(indices) - left.__length_hint__() - 1]  # type: ignore[attr-defined]
            error.add_note(f"stoker: dataset[{offset + failed}] raised it, sample {failed} of this share")
            raise
