"""One pass over somebody's sampler, which can be begun again where it was."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import chain, islice, repeat
from typing import Any

import torch
from torch.utils.data import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from torch.utils.data.distributed import DistributedSampler

_OF_TORCH = (SequentialSampler, RandomSampler, SubsetRandomSampler, WeightedRandomSampler, DistributedSampler)
_WITHOUT_DRAWS = (SequentialSampler, DistributedSampler)  # from generators that others use, too


def is_stateful(thing: Any) -> bool:
    """Whether it can say where it is, and go there."""
    return callable(getattr(thing, "state_dict", None)) and callable(getattr(thing, "load_state_dict", None))


def state_of(thing: Any) -> Any:
    return thing.state_dict() if is_stateful(thing) else None


def is_of_torch(index_sampler: Any) -> bool:
    """Whether it is one of torch's own, of which it is known what happens when it is asked for an index."""
    inner = index_sampler.sampler if type(index_sampler) is BatchSampler else index_sampler
    return type(inner) in _OF_TORCH


def may_draw(index_sampler: Any) -> bool:
    """Whether a sampler may draw from random generators that are not all its own."""
    inner = index_sampler.sampler if type(index_sampler) is BatchSampler else index_sampler
    return type(inner) not in _WITHOUT_DRAWS


def draws_late(index_sampler: Any) -> bool:
    """Whether it draws nothing before it is asked for an index, as torch's own, which are generators."""
    return type(index_sampler) in (BatchSampler, *_OF_TORCH)


class Batches:
    """What iterating torch's ``BatchSampler`` over a sampler of the user's gives, with the state of that sampler."""

    def __init__(self, batch_sampler: BatchSampler) -> None:
        self._sampler: Any = batch_sampler.sampler
        self._size, self._drop_last = batch_sampler.batch_size, batch_sampler.drop_last
        self._iterator: Any = None
        self._samples = 0

    def __iter__(self) -> Batches:
        return self

    def __next__(self) -> list[Any]:
        if self._iterator is None:
            self._iterator = iter(self._sampler)
        batch = list(islice(self._iterator, self._size))
        self._samples += len(batch)
        if not batch or (self._drop_last and len(batch) < self._size):
            raise StopIteration
        return batch

    def state_dict(self) -> dict[str, Any]:
        return {
            "samples_yielded": self._samples,
            "sampler_state": state_of(self._sampler),
            "sampler_iter_state": state_of(self._iterator),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if state.get("sampler_state") is not None:
            self._sampler.load_state_dict(state["sampler_state"])
        self._iterator, self._samples = iter(self._sampler), state["samples_yielded"]
        if state.get("sampler_iter_state") is not None and is_stateful(self._iterator):
            self._iterator.load_state_dict(state["sampler_iter_state"])
        elif not is_stateful(self._sampler):
            skip(self._iterator, self._samples)


class Pass:
    """One pass over an index sampler: its indices one by one, and its state after each.

    Args:
        index_sampler: The loader's.
        iterator: Of that, as it has just been made.
    """

    def __init__(self, index_sampler: Any, iterator: Iterator[Any]) -> None:
        self._sampler: Any = index_sampler
        self._iterator: Any = iterator
        if type(index_sampler) is BatchSampler and type(index_sampler.sampler) not in _OF_TORCH:
            self._iterator = Batches(index_sampler)  # the iterator of torch's has not begun yet
        self.pulled = 0
        self._interrupt: str | None = None  # that has come up in the iterator

    @property
    def has_state(self) -> bool:
        """Whether it has more to say than how many indices it has given."""
        return is_stateful(self._sampler) or is_stateful(self._iterator)

    def __iter__(self) -> Pass:
        return self

    def __next__(self) -> Any:
        try:
            index = next(self._iterator)
        except StopIteration:
            self._check_whole()
            raise
        except BaseException as error:
            self._note(error)
            raise
        self.pulled += 1
        return index

    def pull_into(self, found: deque[Any], count: int) -> None:
        """So many, if there are, in one call: no interrupt comes between asking for an index and having it."""
        before = len(found)
        try:
            found.extend(islice(_continued(self._iterator), count))
        except BaseException as error:
            self._note(error)
            raise
        if len(found) == before:
            self._check_whole()

    def _note(self, error: BaseException) -> None:
        if not isinstance(error, Exception):
            self._interrupt = type(error).__name__

    def _check_whole(self) -> None:
        """Whoever goes on after an interrupt shall not take that for the end of the sampler."""
        if self._interrupt is not None:
            raise RuntimeError(
                f"{self._interrupt} has ended the generator that is the sampler, after {self.pulled} indices, so the "
                f"rest of the epoch is not known: begin the epoch anew, or load a state"
            )

    def draw(self) -> None:
        """Has the sampler draw what it draws before its next index."""
        rest = _continued(self._iterator)
        self._iterator = chain(list(islice(rest, 1)), rest)

    def state_dict(self) -> dict[str, Any]:
        """Under the names that torchdata has for it."""
        return {
            "_index_sampler_state": state_of(self._sampler),
            "_sampler_iter_state": state_of(self._iterator),
            "_sampler_iter_yielded": self.pulled,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.pulled = state["_sampler_iter_yielded"]
        of_sampler, of_iterator = state.get("_index_sampler_state"), state.get("_sampler_iter_state")
        seen = _random_state(of_iterator)
        if seen is not None and type(_innermost(self._sampler)) is RandomSampler:
            self._iterator = iter(_redrawn(self._sampler, seen))
        elif is_stateful(self._sampler) or is_stateful(self._iterator):
            if of_sampler is not None and is_stateful(self._sampler):
                self._sampler.load_state_dict(of_sampler)
                self._iterator = iter(self._sampler)
            if of_iterator is not None and is_stateful(self._iterator):
                self._iterator.load_state_dict(of_iterator)
            return
        skip(self._iterator, self.pulled)


def state_before(index_sampler: Any) -> dict[str, Any]:
    """What a pass over it would say before its first index, had it begun now."""
    batches = type(index_sampler) is BatchSampler and type(index_sampler.sampler) not in _OF_TORCH
    return {
        "_index_sampler_state": state_of(index_sampler),
        "_sampler_iter_state": Batches(index_sampler).state_dict() if batches else None,
        "_sampler_iter_yielded": 0,
    }


def turn(index_sampler: Any, state: dict[str, Any]) -> None:
    """Sets a sampler to where it was when an epoch had ended, so that the next one can begin."""
    of_sampler, of_iterator = state.get("_index_sampler_state"), state.get("_sampler_iter_state")
    if type(index_sampler) is BatchSampler and isinstance(of_iterator, dict):
        index_sampler, of_sampler = index_sampler.sampler, of_iterator.get("sampler_state")
    if of_sampler is not None and is_stateful(index_sampler):
        index_sampler.load_state_dict(of_sampler)


def skip(iterator: Iterator[Any], count: int) -> None:
    next(islice(_continued(iterator), count, count), None)


def _continued(iterator: Iterator[Any]) -> Iterator[Any]:
    """The same from where it is. Lightning's sampler is an iterator that begins anew when it is asked for one."""
    return map(next, repeat(iterator))


def _innermost(sampler: Any) -> Any:
    return sampler.sampler if type(sampler) is BatchSampler else sampler


def _random_state(state: Any) -> Any:
    """That of a generator, if the state is of torchdata's own random sampler."""
    inner = state.get("sampler_iter_state", state) if isinstance(state, dict) else None
    return inner.get("generator") if isinstance(inner, dict) else None


def _redrawn(sampler: Any, state: Any) -> Sampler[Any]:
    """A sampler that gives the order of one of torchdata's whose generator had that state."""
    inner = _innermost(sampler)
    generator = inner.generator if inner.generator is not None else torch.Generator()
    generator.set_state(state)
    again = RandomSampler(inner.data_source, inner.replacement, inner._num_samples, generator=generator)
    return again if inner is sampler else BatchSampler(again, sampler.batch_size, sampler.drop_last)
