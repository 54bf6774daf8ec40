"""The iterator of a loader without workers."""

from __future__ import annotations

from typing import Any

from torch.utils.data import _DatasetKind
from torch.utils.data._utils.pin_memory import pin_memory
from torch.utils.data.dataloader import _SingleProcessDataLoaderIter

from stoker.torch import draws
from stoker.torch.beginning import begun
from stoker.torch.sampling import is_stateful
from stoker.torch.states import SavedState
from stoker.torch.work import Task, dataset_state, seed_generators


class InProcess(_SingleProcessDataLoaderIter):  # type: ignore[misc]  # mypy does not look at torch
    """Torch's own, which also knows where it is."""

    def __init__(self, loader: Any, saved: SavedState | None) -> None:
        state = {} if saved is None else saved.snapshot.workers.get(0, {})
        if state.get("dataset_state") is not None and is_stateful(loader.dataset):
            loader.dataset.load_state_dict(state["dataset_state"])  # before it is asked for an iterator
        self._seed = loader.seed
        begin = super().__init__
        self.progress = begun(self, loader, saved, lambda: begin(loader))
        if saved is not None:
            self._num_yielded = saved.snapshot.step
            if self._dataset_kind == _DatasetKind.Iterable:
                self._bring_to(saved)

    def state_dict(self) -> dict[str, Any]:
        """Of the dataset as it is now."""
        self.progress.workers[0] = dataset_state(self._dataset_kind, self._dataset_fetcher, self._dataset)
        if self._sampler_iter.has_state:
            self.progress.sampler_states[self.progress.low] = self._sampler_iter.state_dict()
        self.progress.take_snapshot()
        return self.progress.state_dict()

    def __next__(self) -> Any:
        try:
            return super().__next__()
        except StopIteration:
            self.progress.finished = True
            raise

    def _next_data(self) -> Any:
        while self._sampler_iter.pulled in self.progress.taken:  # saved by a loader whose batches came out of order
            self._next_index()
        data = super()._next_data() if self._seed is None else self._next_seeded(self._seed)
        number = self._sampler_iter.pulled - 1
        self.progress.took(Task(self.progress.epoch, number, None, 0, None, False, None), None)
        return data

    def _next_seeded(self, seed: int) -> Any:
        """With the random numbers that it would have in a worker; those of this process stay as they are."""
        index = self._next_index()
        with draws.kept():
            seed_generators(seed, self.progress.epoch, self._sampler_iter.pulled - 1)
            data = self._dataset_fetcher.fetch(index)
        return pin_memory(data, self._pin_memory_device) if self._pin_memory else data

    def _bring_to(self, saved: SavedState) -> None:
        fetcher, state = self._dataset_fetcher, saved.snapshot.workers.get(0, {}).get("fetcher_state")
        if not is_stateful(self._dataset) and not is_stateful(fetcher.dataset_iter):
            for _ in range(saved.snapshot.step):
                fetcher.fetch(self._next_index())
        elif state is not None:
            if state["dataset_iter_state"] is not None and is_stateful(fetcher.dataset_iter):
                fetcher.dataset_iter.load_state_dict(state["dataset_iter_state"])
            fetcher.ended = state["fetcher_ended"]
