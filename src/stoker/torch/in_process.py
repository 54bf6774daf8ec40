"""The iterator of a loader without workers."""

from __future__ import annotations

import dataclasses
import functools
from time import perf_counter
from typing import Any

from torch.autograd import profiler
from torch.utils.data import _DatasetKind, default_collate
from torch.utils.data._utils.pin_memory import pin_memory
from torch.utils.data.dataloader import _SingleProcessDataLoaderIter

import stoker
from stoker.torch import draws
from stoker.torch.beginning import begun
from stoker.torch.retrying import Retried
from stoker.torch.sampling import draws_late, is_stateful
from stoker.torch.seals import opened, sealed
from stoker.torch.states import SavedState
from stoker.torch.work import dataset_state, is_batch, seed_generators


class InProcess(_SingleProcessDataLoaderIter):  # type: ignore[misc]  # mypy does not look at torch
    """Torch's own, which also knows where it is."""

    def __init__(self, loader: Any, saved: SavedState | None) -> None:
        state = {} if saved is None else opened(saved.snapshot.workers.get(0))
        if state.get("dataset_state") is not None and is_stateful(loader.dataset):
            loader.dataset.load_state_dict(state["dataset_state"])  # before it is asked for an iterator
        if saved is not None and saved.turns_epoch:
            _set_to_end(loader.dataset, state.get("fetcher_state"))
        self._seed = loader.seed
        self._figures, self._display, self._batch_size = loader._figures, loader._display, loader.batch_size
        self._index: tuple[Any] | None = None  # of the batch that is being made
        begin = super().__init__
        self.progress = begun(self, loader, saved, lambda: begin(loader))
        self._taken = frozenset(self.progress.taken)  # before, by a loader whose batches came out of order
        if loader._retry is not None:
            self._dataset_fetcher.dataset = Retried(loader.dataset, loader._retry, self._figures.note_retry)
        self._fetch = self._dataset_fetcher.fetch
        if self._collate_fn is default_collate and self._auto_collation:
            self._dataset_fetcher.collate_fn = _collated
            if self._dataset_kind == _DatasetKind.Map:
                self._fetch = functools.partial(_fetched, self._dataset_fetcher.dataset)
        if saved is not None and not saved.turns_epoch:
            self._num_yielded = saved.snapshot.step
            if self._dataset_kind == _DatasetKind.Iterable:
                self._bring_to(saved.snapshot.step, state.get("fetcher_state"))

    def state_dict(self) -> dict[str, Any]:
        """Of the dataset as it is now."""
        self.progress.workers[0] = sealed(dataset_state(self._dataset_kind, self._dataset_fetcher, self._dataset))
        if self._sampler_iter.has_state:
            self.progress.sampler_states[self.progress.low] = self._sampler_iter.state_dict()
        if not self._sampler_iter.pulled and draws_late(self._index_sampler):
            return dataclasses.replace(
                self.progress,
                base_seed=None,
                draws=draws.captured(self.progress.generators),
                drew_no_seed=True,
                snapshot=self.progress.current(),
            ).state_dict()
        return self.progress.state_dict()

    def __next__(self) -> Any:
        self._display.tick()
        try:
            if profiler._is_profiler_enabled or self._IterableDataset_len_called is not None:
                return super().__next__()  # which has the profiler's span, and warns of a length that lies
            data = self._next_data()
            self._num_yielded += 1
            return data
        except StopIteration:
            self.progress.finish(self._sampler_iter)
            self._display.end_bar()
            raise

    def _next_data(self) -> Any:
        if self._index is None:
            while self._sampler_iter.pulled in self._taken:
                self._next_index()
            self._index = (self._next_index(),)
        number, began = self._sampler_iter.pulled - 1, perf_counter()
        try:
            data = self._made(self._index[0], number)
        except Exception:
            self._index = None  # as in torch, whoever goes on gets the next; after Ctrl-C, the same
            raise
        self._figures.made_alone(perf_counter() - began, self._batch_size)
        self.progress.took_next(number)
        self._index = None
        return data

    def _made(self, index: Any, number: int) -> Any:
        if self._seed is None:
            data = self._fetch(index)
        else:  # with the random numbers that it would have in a worker; those of this process stay as they are
            with draws.kept():
                seed_generators(self._seed, self.progress.epoch, number)
                data = self._fetch(index)
        return pin_memory(data, self._pin_memory_device) if self._pin_memory else data

    def _bring_to(self, step: int, state: dict[str, Any] | None) -> None:
        fetcher = self._dataset_fetcher
        if not is_stateful(self._dataset) and not is_stateful(fetcher.dataset_iter):
            for _ in range(step):
                fetcher.fetch(self._next_index())
        elif state is not None:
            if state["dataset_iter_state"] is not None and is_stateful(fetcher.dataset_iter):
                fetcher.dataset_iter.load_state_dict(state["dataset_iter_state"])
            fetcher.ended = state["fetcher_ended"]


def _fetched(dataset: Any, index: Any) -> Any:
    return _collated(stoker.fetch(dataset, index))


def _collated(samples: Any) -> Any:
    """As torch's ``default_collate``, in less time."""
    return stoker.collate(samples, like="torch") if is_batch(samples) else default_collate(samples)


def _set_to_end(dataset: Any, state: dict[str, Any] | None) -> None:
    """Of the epoch before: what its iterator did to it then, as far as that is in the state."""
    if state is not None and state["dataset_iter_state"] is not None:
        iterator = iter(dataset)
        if is_stateful(iterator):
            iterator.load_state_dict(state["dataset_iter_state"])
