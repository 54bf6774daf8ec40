"""Batches in an order of Stoker's, for a DataLoader: mixtures, weights, buckets, even shards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

from torch.utils.data import Sampler

import stoker


class BatchSampler(Sampler[list[int]]):  # type: ignore[misc]  # mypy does not look at torch
    """The batches of a ``stoker.Loader`` with these arguments: ``DataLoader(mix, batch_sampler=BatchSampler(mix))``.

    So a ``Mix``, ``Weighted``, ``Buckets``, a nearby shuffle and even shards come to a loader of torch's kind. Each
    loop is the next epoch. The state of ``stoker.torch.DataLoader`` has the epoch and the step, so a resume is a seek.

    Args:
        dataset: That of the DataLoader.
        batch_size: Samples in a batch.
        shuffle: As for ``stoker.Loader``, and so are all that follow.
        seed: Seeds the order.
        drop_last: Leave out a last batch that is not full.
        shard: (index, count), or "auto".
        even_shards: False: nothing is repeated.
        order: ``Weighted(...)``, ``Buckets(...)``, indices, or a function of the epoch.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument has a wrong value.

    Example:
        >>> import stoker
        >>> from stoker.torch import BatchSampler, DataLoader
        >>> mix = stoker.Mix({"web": range(6), "code": range(100, 103)}, {"web": 2, "code": 1})
        >>> loader = DataLoader(mix, batch_sampler=BatchSampler(mix, batch_size=3))
        >>> [batch.tolist() for batch in loader]
        [[0, 100, 1], [2, 101, 3], [4, 102, 5]]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 32,
        *,
        shuffle: bool | int = False,
        seed: int = 0,
        drop_last: bool = False,
        shard: tuple[int, int] | Literal["auto"] | None = None,
        even_shards: bool = True,
        order: Any = None,
    ) -> None:
        self.batch_size, self.drop_last = batch_size, drop_last  # which Accelerate and Lightning look at
        self.epoch = 0  # that the next loop is over
        self._unset: dict[str, Any] | None = None  # the plan's state before weights were set
        self._plan: stoker.Loader = stoker.Loader(
            dataset,
            batch_size,
            shuffle=shuffle,
            seed=seed,
            drop_last=drop_last,
            shard=shard,
            even_shards=even_shards,
            order=order,
        )

    def set_epoch(self, epoch: int) -> None:
        """Makes ``epoch`` the one that the next loop is over."""
        self.epoch = epoch

    def set_weights(self, weights: Mapping[str, float] | Sequence[float]) -> None:
        """Gives the sources of a ``Mix`` other weights from the next loop on, and ends its schedule there.

        The loop that runs, if any, keeps its own, as it has been asked for batches ahead. The change is part of the
        state. With several shards, call this in each process between the same two loops.

        Args:
            weights: One for each source, by name or in order.

        Raises:
            TypeError: The dataset is no ``Mix``.
            ValueError: The weights have a wrong value, or the mixture has one epoch only (``ends="never"``), which has
                begun.
        """
        before = self._plan.state_dict()
        self._plan.seek(self.epoch, 0)
        self._plan.set_weights(weights, after=0)
        self._unset = self._unset or before

    def __len__(self) -> int:
        """The number of batches in an epoch."""
        return len(self._plan)

    def __iter__(self) -> Iterator[list[int]]:
        return _Epoch(self)

    def state_dict(self) -> dict[str, Any]:
        """The epoch that the next loop is over, what the order depends on, and the weights that were set."""
        weights = {} if self._unset is None else {"weights": self._plan.state_dict()}
        return {"epoch": self.epoch, "order": self._settings, **weights}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on with that epoch.

        Raises:
            StateError: The order is not that of the state, or it is no such state.
        """
        try:
            epoch, theirs = int(state["epoch"]), dict(state["order"])
        except (TypeError, ValueError, LookupError) as error:
            raise stoker.StateError(f"this is no state of a BatchSampler: {error!r}") from error
        ours = self._settings
        for name in {**theirs, **ours}:
            if theirs.get(name) != ours.get(name):
                raise stoker.StateError(
                    f"the state was saved with a BatchSampler whose {name} is {theirs.get(name)!r}, and this one has "
                    f"{ours.get(name)!r}: make the dataset and the BatchSampler as they were, or start afresh"
                )
        weights = state.get("weights")
        if weights is not None:
            self._unset = self._unset or self._plan.state_dict()
            self._plan.load_state_dict(weights)
        elif self._unset is not None:
            self._plan.load_state_dict(self._unset)
            self._unset = None
        self.epoch = epoch

    @cached_property
    def _settings(self) -> dict[str, Any]:
        """What the batch of a step follows from, as JSON can hold it. Steps are of so many shards."""
        state = self._plan.state_dict()
        mixture = {name: state.get("mixture", {}).get(name) for name in ("sources", "schedule", "ends")}
        return {**state["plan"], "shards": state["shards"], **mixture}

    def indices(self, epoch: int, step: int) -> list[int] | None:
        """Those of the batch of a step; None after the last one of the epoch."""
        try:
            return self._plan.indices(epoch, step)
        except IndexError:
            return None


class _Epoch:
    """One pass over an epoch. Which one is known when its first batch is asked for: torch makes some in vain."""

    def __init__(self, sampler: BatchSampler) -> None:
        self._sampler = sampler
        self._epoch: int | None = None
        self._step = 0

    def __iter__(self) -> _Epoch:
        return self

    def __next__(self) -> list[int]:
        if self._epoch is None:
            self._begin(self._sampler.epoch)
        assert self._epoch is not None
        indices = self._sampler.indices(self._epoch, self._step)
        if indices is None:
            raise StopIteration
        self._step += 1
        return indices

    def state_dict(self) -> dict[str, int]:
        return {"epoch": self._sampler.epoch if self._epoch is None else self._epoch, "step": self._step}

    def load_state_dict(self, state: dict[str, int]) -> None:
        try:
            epoch, step = int(state["epoch"]), int(state["step"])
        except (TypeError, ValueError, LookupError) as error:
            raise stoker.StateError(f"this is no state of an iterator of a BatchSampler: {error!r}") from error
        self._begin(epoch)
        self._step = step

    def _begin(self, epoch: int) -> None:
        self._epoch, self._sampler.epoch = epoch, epoch + 1
