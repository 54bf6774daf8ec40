"""What a worker does, and what it is to torch: its seeds, its worker info, its fetcher."""

from __future__ import annotations

import dataclasses
import multiprocessing
import random
from collections import OrderedDict, UserDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
import torch
from torch._utils import ExceptionWrapper
from torch.utils.data import _DatasetKind, default_collate, graph_settings
from torch.utils.data._utils import collate as torch_collate
from torch.utils.data._utils import worker as torch_worker

import stoker
from stoker.torch.retrying import Retried
from stoker.torch.sampling import is_stateful, state_of
from stoker.torch.seals import opened, sealed, sealed_batch

_MANY = 8  # objects: fewer are as quickly walked over
_DEEPEST = 16  # containers in containers
_BUILTIN = {dict, OrderedDict, list, tuple}


class Task(NamedTuple):
    """One batch to make.

    Attributes:
        epoch: How often the loader was iterated before.
        serial: Its number among all tasks of the epoch. Below 0: no batch, but a greeting, which is answered with the
            state of the worker's dataset before its first batch.
        worker: The one that is to make it; None: any.
        nth: Of an iterable dataset: how many batches the worker has made before it.
        index: What the sampler gave.
        snapshot: Whether the state of the dataset is wanted with it.
        shared_seed: What an ``IterDataPipe`` is seeded with in that epoch.
    """

    epoch: int
    serial: int
    worker: int | None
    nth: int
    index: Any
    snapshot: bool
    shared_seed: int | None


class Result(NamedTuple):
    """A batch, and the state of the dataset after it, sealed: it may change before it travels."""

    data: Any
    state: bytes


class Bundle(NamedTuple):
    """What a worker has made of a bundle of tasks.

    Attributes:
        serial: The number of its first task.
        results: One for each task.
        seconds: What a batch takes, writing it into shared memory included.
        retries: How often a sample of them was read again.
    """

    serial: int
    results: tuple[Any, ...]
    seconds: float
    retries: int


class Ended(NamedTuple):
    """The worker's iterable dataset has given all it has."""

    state: bytes | None


class Whole:
    """An object that travels as one pickle, whatever is in it, and is the object itself on the other side."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __reduce__(self) -> Any:
        return _itself, (self.value,)


def _itself(value: Any) -> Any:
    return value


@dataclass
class Work:
    """Makes batches in a worker as torch's own worker loop does.

    Attributes:
        states: Of each worker's dataset, and how many batches it had made by then: where a worker begins. With "fork",
            one that takes another's place sees what the consumer has noted here since.
        epoch: Which these are of.
        seed: With it, all generators are seeded for each batch anew, so that it does not matter who makes it.
    """

    kind: int
    dataset: Any
    auto_collation: bool
    collate_fn: Callable[[Any], Any]
    drop_last: bool
    base_seed: int
    shared_seed: int | None
    init_fn: Callable[[int], None] | None
    num_workers: int
    seed: int | None
    retry: stoker.Retry | None
    epoch: int
    states: dict[int, tuple[int, bytes]] = field(default_factory=dict)
    _fetcher: Any = None
    _failure: Any = None
    _made: int = 0
    _retries: int = 0
    _rng: Any = None
    _tells_state: bool = False
    _seals: bool = True  # batches of objects, of which none had tensors within
    _used: float = 0.0  # seconds of the processor, up to the end of the last bundle,
    _before: int = 1  # which had so many tasks

    def start(self) -> None:
        """In a worker, before its first task: what torch does in one."""
        number = stoker.worker_number()
        assert number is not None
        multiprocessing.current_process().name = f"DataLoader worker {number}"  # which log records have
        torch.set_num_threads(1)
        seed = self.base_seed + number
        random.seed(seed)
        _seed_torch(seed)
        np.random.seed(torch_worker._generate_state(self.base_seed, number))
        if isinstance(self.dataset, torch.utils.data.IterDataPipe):
            self._rng = torch.Generator()
            self._apply_seed(self.shared_seed)
        torch_worker._worker_info = torch_worker.WorkerInfo(
            id=number, num_workers=self.num_workers, seed=seed, dataset=self.dataset
        )
        _stack_in_own_memory()
        try:
            if self.init_fn is not None:
                self.init_fn(number)
            self._begin(number)
        except Exception:
            self._failure = _caught(number)

    def __call__(self, tasks: tuple[Task, ...]) -> Bundle:
        began, number = perf_counter(), stoker.worker_number()
        assert number is not None
        results = tuple([self._do(task, number) for task in tasks])
        # What is waited for shows on the clock, and what writing the last bundle took in what the process has used.
        ended, used = perf_counter(), process_time()
        seconds = max((ended - began) / len(tasks), (used - self._used) / max(len(tasks), self._before))
        self._used, self._before = used, len(tasks)
        retries, self._retries = self._retries, 0
        return Bundle(tasks[0].serial, results, seconds, retries)

    def _do(self, task: Task, number: int) -> Any:
        state = None
        try:
            if self._failure is not None:
                data, self._failure = self._failure, None
            elif task.serial < 0:
                self._enter(task)
                data, state = None, self._state(number)
            else:
                self._come_to(task, number)
                data = self._fetch(task.index)
                if task.snapshot and self._tells_state:
                    state = self._state(number)
                data = self._sealed(_exact(data))
        except Exception as error:
            if isinstance(error, StopIteration) and self.kind == _DatasetKind.Iterable:
                data = Ended(self._state(number) if self._tells_state else None)
            else:
                data = _caught(number)
        return data if state is None else Result(data, state)

    def _begin(self, number: int) -> None:
        """From the state that there is, if there is one: the dataset's, then its iterator's."""
        made, seal = self.states.get(number, (0, None))
        state = opened(seal)
        if state.get("dataset_state") is not None and is_stateful(self.dataset):
            self.dataset.load_state_dict(state["dataset_state"])
        self._make_fetcher()
        self._made = made
        of_fetcher = state.get("fetcher_state")
        if of_fetcher is not None and self._tells_state:
            if of_fetcher["dataset_iter_state"] is not None and is_stateful(self._fetcher.dataset_iter):
                self._fetcher.dataset_iter.load_state_dict(of_fetcher["dataset_iter_state"])
            self._fetcher.ended = of_fetcher["fetcher_ended"]

    def _make_fetcher(self) -> None:
        collate = self.collate_fn
        if collate is default_collate:
            collate = self._collate_later
        dataset = self.dataset if self.retry is None else Retried(self.dataset, self.retry, self._note_retry)
        self._fetcher = _DatasetKind.create_fetcher(self.kind, dataset, self.auto_collation, collate, self.drop_last)
        self._made = 0
        iterator = getattr(self._fetcher, "dataset_iter", None)
        self._tells_state = is_stateful(self.dataset) or is_stateful(iterator)

    def _enter(self, task: Task) -> None:
        """The epoch of the task."""
        if self.epoch != task.epoch:
            if self._rng is not None:
                self._apply_seed(task.shared_seed)
            self._make_fetcher()
        self.epoch = task.epoch

    def _come_to(self, task: Task, number: int) -> None:
        """To where the task is to be done: in its epoch, after the batches that come before it."""
        self._enter(task)
        if self.kind == _DatasetKind.Iterable:
            while self._made < task.nth:  # it has taken the place of one that had come so far
                self._seed(task._replace(nth=self._made))
                self._fetcher.fetch(task.index)
                self._made += 1
        elif self.seed is None and self._made < task.nth:  # its random numbers go on, not from the beginning
            seed_generators(self.base_seed, number, task.nth)
        self._seed(task)
        self._made = max(self._made, task.nth + 1)

    def _seed(self, task: Task) -> None:
        """By what tells it from other batches of the epoch, whoever makes it, and however often it was begun."""
        if self.seed is None:
            return
        if self.kind != _DatasetKind.Iterable:
            seed_generators(self.seed, task.epoch, task.serial)
        else:
            assert task.worker is not None
            seed_generators(self.seed, task.epoch, task.worker, task.nth)

    def _fetch(self, index: Any) -> Any:
        if self.kind == _DatasetKind.Map and self.auto_collation and self.collate_fn is default_collate:
            return self._collate_later(stoker.fetch(self._fetcher.dataset, index))
        return self._fetcher.fetch(index)

    def _collate_later(self, samples: Any) -> Any:
        """As torch's ``default_collate``, of which the errors are."""
        if is_batch(samples):
            return stoker.collate(samples, like="torch", copy=False, otherwise=lambda: _by_torch(samples))
        return default_collate(samples)

    def _sealed(self, data: Any) -> Any:
        if type(data) is not Whole or not self._seals:
            return data
        found = sealed_batch(data.value)
        self._seals = found is not None
        return data if found is None else found

    def _state(self, number: int) -> bytes:
        """Under the names that torchdata has for it."""
        return sealed(dataset_state(self.kind, self._fetcher, self.dataset) | {"worker_id": number})

    def _note_retry(self) -> None:
        self._retries += 1

    def _apply_seed(self, seed: int | None) -> None:
        assert seed is not None
        self._rng.manual_seed(seed)
        self.dataset = graph_settings.apply_random_seed(self.dataset, self._rng)


def is_batch(samples: Any) -> bool:
    """Whether it is what ``stoker.collate`` takes as torch does: of a tuple of texts, torch would make nothing else."""
    if not isinstance(samples, Sequence) or not len(samples):
        return False
    return type(samples) is not tuple or not isinstance(samples[0], str | bytes)


def dataset_state(kind: int, fetcher: Any, dataset: Any) -> dict[str, Any]:
    """Where a dataset is, as far as it can say so."""
    if kind != _DatasetKind.Iterable:
        return {"fetcher_state": None, "dataset_state": state_of(dataset)}
    iterator = fetcher.dataset_iter
    of_fetcher = {"dataset_iter_state": state_of(iterator), "fetcher_ended": fetcher.ended}
    return {"fetcher_state": of_fetcher, "dataset_state": None if iterator is dataset else state_of(dataset)}


def _stack_in_own_memory() -> None:
    """A collate function of the user's that calls torch's need not make files in shared memory: we copy it to ours."""
    stacks = torch_collate.default_collate_fn_map
    if stacks.get(torch.Tensor) is torch_collate.collate_tensor_fn:
        stacks[torch.Tensor] = _stacked


def _stacked(batch: Any, *, collate_fn_map: Any = None) -> Any:
    first = batch[0]
    is_odd = first.is_nested or first.layout is not torch.strided
    if is_odd or any(getattr(tensor, "requires_grad", True) or tensor.dtype != first.dtype for tensor in batch):
        return torch_collate.collate_tensor_fn(batch, collate_fn_map=collate_fn_map)  # which raises, or casts
    return torch.stack(batch, 0).contiguous()  # as torch has it in a worker


_stacked.is_like_torch = True  # type: ignore[attr-defined]  # which stoker.collate asks, before it does it quicker


def _by_torch(samples: Any) -> Any:
    """A batch that cannot be stacked in shared memory: torch says why, or stacks it in memory of its own."""
    try:
        return default_collate(samples)
    except Exception:
        number = stoker.worker_number()
        assert number is not None
        return _caught(number)


def _seed_torch(seed: int) -> None:
    """As ``torch.manual_seed``, which where torch knows no accelerator takes 3 ms in a new process to seed none."""
    if torch.accelerator.current_accelerator() is None:
        torch.default_generator.manual_seed(seed)
    else:
        torch.manual_seed(seed)


def _caught(number: int) -> ExceptionWrapper:
    return ExceptionWrapper(where=f"in DataLoader worker process {number}")


def seed_generators(*parts: int) -> None:
    """All generators, from numbers that tell one batch from another."""
    words = np.random.SeedSequence([part % 2**64 for part in parts]).generate_state(4, np.uint32)
    seed = int(words[:2].view(np.uint64)[0])
    random.seed(seed)
    np.random.seed(words)
    torch.default_generator.manual_seed(seed)


def _exact(data: Any) -> Any:
    """The same, with containers whole that would come out as others, or not with all that they have."""
    cls: Any = type(data)
    if not _is_container(cls):
        return data
    if cls is dict or cls is OrderedDict:
        return cls((key, _exact(value)) for key, value in data.items()) if _has_containers(data.values()) else data
    if cls is list or cls is tuple:
        return _exact_rows(cls, data)
    return data if _is_kept(cls) else Whole(data)


def _exact_rows(cls: Any, data: Sequence[Any]) -> Any:
    """The same for a list or tuple. Many objects, or rows of them, are one pickle: no walk over all that is in them."""
    kinds = set(map(type, data))
    if not any(map(_is_container, kinds)):
        return Whole(data) if len(data) >= _MANY and all(map(_is_object, kinds)) else data
    if len(data) >= _MANY and len(kinds) == 1 and kinds <= {dict, list, tuple}:
        within = set(map(type, chain.from_iterable(map(dict.values, data) if dict in kinds else data)))
        if all(map(_is_object, within)):
            return Whole(data)
    return data if _is_exact(data) else cls(map(_exact, data))


def _is_exact(level: Iterable[Any]) -> bool:
    """Whether all containers in it are built-in ones or plain namedtuples, which come out as they are."""
    for _ in range(_DEEPEST):
        level = list(level)
        kinds = {kind for kind in set(map(type, level)) if _is_container(kind)}
        if not kinds:
            return True
        if not all(kind in _BUILTIN or (issubclass(kind, tuple) and _is_kept(kind)) for kind in kinds):
            return False
        containers = [value for value in level if type(value) in kinds]
        level = chain.from_iterable(value.values() if isinstance(value, dict) else value for value in containers)
    return False


def _has_containers(values: Iterable[Any]) -> bool:
    return any(map(_is_container, set(map(type, values))))


@lru_cache(maxsize=1024)
def _is_container(cls: Any) -> bool:
    return issubclass(cls, (Mapping, list, tuple)) or dataclasses.is_dataclass(cls)


@lru_cache(maxsize=1024)
def _is_object(cls: Any) -> bool:
    """Whether it is pickled anyway: no container, and nothing that has a place of its own in shared memory."""
    is_ours = cls.__module__.partition(".")[0] == "stoker"  # a column, which is an array in time
    return not (_is_container(cls) or is_ours or issubclass(cls, (torch.Tensor, np.ndarray)))


@lru_cache(maxsize=1024)
def _is_kept(cls: Any) -> bool:
    """Whether all of it comes out: a mapping like Hugging Face's ``BatchEncoding``, or a plain namedtuple."""
    return issubclass(cls, UserDict) or (cls.__bases__ == (tuple,) and hasattr(cls, "_fields"))
