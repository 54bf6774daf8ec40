"""A consumer's share of a dataset: one contiguous block, as made in each of its workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any


class Share:
    """Samples ``consumer * size`` up to ``(consumer + 1) * size``, where size is length / consumers, rounded up.

    So the last consumers may have fewer samples, or none.
    """

    def __init__(
        self, dataset_class: Callable[..., Any], dataset_kwargs: Mapping[str, Any], consumer: int, consumers: int
    ) -> None:
        self._dataset = dataset = dataset_class(**dataset_kwargs)
        for method in ("__getitem__", "__len__"):
            if not hasattr(type(dataset), method):
                raise TypeError(f"dataset_class made a {type(dataset).__name__} that has no {method}: give it one")
        length = len(dataset)
        if not length:
            raise ValueError(f"the {type(dataset).__name__} that dataset_class made is empty: look at dataset_kwargs")
        size = -(-length // consumers)
        self._offset = min(consumer * size, length)
        self._length = min(size, length - self._offset)
        self._many = getattr(dataset, "__getitems__", None)

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> Any:
        return self._dataset[self._offset + index]

    def __getitems__(self, indices: Sequence[int]) -> Any:
        """A batch at a time also where the dataset has no such method: a call a sample would be felt."""
        offset, dataset = self._offset, self._dataset
        places = [offset + index for index in indices] if offset else indices
        if self._many is not None:
            return self._many(places)
        left = iter(places)
        try:
            return [dataset[index] for index in left]
        except Exception as error:
            failed = len(places) - left.__length_hint__() - 1  # type: ignore[attr-defined]
            error.add_note(f"stoker: dataset[{places[failed]}] raised it, sample {indices[failed]} of this share")
            raise
