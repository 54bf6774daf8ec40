"""The iterator of a loader with workers, which are Stoker's."""

from __future__ import annotations

import functools
import re
import signal
import weakref
from collections.abc import Callable
from operator import index
from time import monotonic, sleep
from typing import Any

from torch._utils import ExceptionWrapper
from torch.autograd import profiler
from torch.utils.data import IterDataPipe, MapDataPipe, _DatasetKind
from torch.utils.data._utils.pin_memory import pin_memory
from torch.utils.data.dataloader import _BaseDataLoaderIter, _sharding_worker_init_fn

import stoker
from stoker.torch.beginning import begun
from stoker.torch.pacing import most_at_a_time, next_size
from stoker.torch.ranks import rank_of
from stoker.torch.sampling import is_of_torch, is_stateful
from stoker.torch.seals import SealedBatch
from stoker.torch.states import SavedState
from stoker.torch.tasks import IterableTasks, MapTasks
from stoker.torch.work import Bundle, Ended, Result, Task, Work
from stoker.torch.worker_handles import WorkerHandle
from stoker.torch.workers import workers_of

_DEATHS = 3  # over one batch, with recover=True
_SIGNAL = re.compile(r"SIG\w+ \(-(\d+)\)")  # in what is said of a death
_UP_S, _LOOK_AGAIN_S = 10.0, 0.002  # for workers to be up


class InWorkers(_BaseDataLoaderIter):  # type: ignore[misc]  # mypy does not look at torch
    """Gives tasks to a ``stoker.stream``, and batches to the consumer."""

    _shared_seed: int | None

    def __init__(self, loader: Any, saved: SavedState | None) -> None:
        begin, begin_again = super().__init__, super()._reset

        def begin_as_torch() -> None:
            begin(loader)
            shared_seed = self._shared_seed
            begin_again(loader, first_iter=True)  # where torch asks the sampler for an iterator once more,
            self._shared_seed = shared_seed  # and draws another seed for data pipes, when workers have the first

        self.progress = begun(self, loader, saved, begin_as_torch)
        # Of NumPy's kinds of numbers, too, and whatever else torch takes for them.
        self._num_workers = int(index(loader.num_workers))
        self._in_order, self._prefetch_factor = bool(loader.in_order), int(index(loader.prefetch_factor))
        if self._prefetch_factor <= 0:
            raise AssertionError("prefetch_factor must be greater than 0 where there are workers")
        is_iterable = self._dataset_kind == _DatasetKind.Iterable
        self._given = 0  # batches, and errors in their place, of this pass over the sampler
        self._figures, self._display = loader._figures, loader._display
        self._recovers, self._pids = loader.recover, set[int]()
        self._last_workers: list[WorkerHandle] = []  # shortly before the end, when the stream still knew them
        self._greets = is_stateful(self._dataset)  # as torchdata does: what a worker's dataset is like at first
        self._is_pinned = is_iterable or self._greets or (self._in_order and loader.seed is None)
        to_pass = 0 if saved is None else saved.steps
        if is_iterable and saved is not None and not saved.tells_datasets and not saved.own:
            to_pass += saved.snapshot.step  # torchdata's does not tell which worker has made how many
            self.progress = self.progress.anew()
        self._tasks = self._new_tasks()
        self._done: dict[int, Any] = {}  # what has come, and was not settled yet
        self._arrived: Bundle | None = None  # and was not unpacked yet
        self._offered: tuple[Any, Task, Any] | None = None  # a batch that the consumer has not got yet
        self._is_known = is_iterable or is_of_torch(self._index_sampler)  # what happens when it is asked for an index
        self._most = self._most_at_a_time(loader)
        self._keep_in_step(0)
        self._work = self._new_work(loader, saved)
        at_once = self._num_workers * self._prefetch_factor
        worker_of = functools.partial(_worker_of, count=self._num_workers, at_once=at_once)
        self._stream: stoker.Stream[Bundle] | None = stoker.stream(
            self._work,
            self._tasks,
            workers=workers_of(loader),
            prefetch=self._prefetch_factor,
            in_order=self._in_order,
            init=self._work.start,
            worker_of=worker_of if self._is_pinned or loader.seed is None else None,
            keep_workers=bool(self._persistent_workers),
            seed=None,
            timeout=self._timeout or None,
            max_deaths=_DEATHS if loader.recover else 1,
        )
        self._figures.follow(self._stream.observed, loader.batch_size)
        self._describe(loader)
        loader._stream = weakref.ref(self._stream)
        if loader._trace is not None and loader._trace.is_recording:
            self._stream.trace(loader._trace)
        self._stream.warm_up()
        self._hear_greetings()
        self._num_yielded = self.progress.yielded
        for _ in range(to_pass):
            next(self)

    @property
    def _workers(self) -> list[WorkerHandle]:
        """As torch's iterator has it, for those who look there: all of them, so it waits until they are up."""
        if self._stream is None:
            return self._last_workers
        deadline = monotonic() + _UP_S
        while len(pids := self._stream.worker_pids) < self._num_workers and monotonic() < deadline:
            sleep(_LOOK_AGAIN_S)
        return [WorkerHandle(pid) for pid in pids]

    def _reset(self, loader: Any, first_iter: bool = False, *, saved: SavedState | None = None) -> None:
        """Begins the next epoch with the same workers."""
        assert self._stream is not None
        begin = super()._reset
        self.progress = begun(self, loader, saved, lambda: begin(loader, first_iter), draws_seed=False)
        self._tasks, self._done, self._given = self._new_tasks(), {}, 0
        self._arrived = self._offered = None
        self._keep_in_step(0)
        self._work.epoch = loader._epoch
        self._work.states.clear()
        self._describe(loader)
        self._stream.restart(self._tasks)
        self._stream.warm_up()
        self._hear_greetings()

    def _describe(self, loader: Any) -> None:
        """For the report and the live page."""
        assert self._stream is not None
        title = f"DataLoader({type(loader.dataset).__name__}, batch_size={loader.batch_size})"
        observed = self._stream.observed
        observed.describe(title, self._figures.adapt, epoch=loader._epoch, shard=rank_of(loader))
        self._display.show(observed)

    def __next__(self) -> Any:
        self._display.tick()
        if self._offered is not None:  # and an interrupt came before the consumer had it
            self._count(*self._offered)
        else:
            try:
                if profiler._is_profiler_enabled or self._IterableDataset_len_called is not None:
                    super().__next__()  # which has the profiler's span, and warns of a length that lies
                else:
                    self._next_data()
                    self._num_yielded += 1
            except StopIteration:
                self.progress.finish(self._sampler_iter)
                self._display.end_bar()
                raise
        assert self._offered is not None
        (data, _, _), self._offered = self._offered, None  # at once with giving it: no call in between
        return data

    def _next_data(self) -> Any:
        """The same as in ``_offered``, where it stays until the consumer has it."""
        while True:
            task, result = self._next_done()
            data, state = result if type(result) is Result else (result, None)
            if type(data) is Ended:
                assert task.worker is not None
                self.progress.worker_ended(task.worker, data.state)
                self._settle(task)
                continue
            self._keep_in_step(self._given + 1)
            if isinstance(data, ExceptionWrapper):
                self._settle(task)
                data.reraise()
            if type(data) is SealedBatch:
                data = _opened(data, functools.partial(self._settle, task))
            if self._pin_memory:
                data = pin_memory(data, self._pin_memory_device)
            self._offered = data, task, state
            self._count(*self._offered)
            return data

    def _hear_greetings(self) -> None:
        """Waits until each worker has answered, if they were greeted. Raises what keeps one from beginning."""
        out, done = self._tasks.out, self._done
        while greetings := [serial for serial in out if serial < 0]:
            answered = [serial for serial in greetings if serial in done]
            for serial in answered:
                task, answer = out[serial], done[serial]
                self._settle(task)
                if isinstance(answer, ExceptionWrapper):
                    self._shutdown_workers()
                    answer.reraise()
                assert task.worker is not None
                self.progress.worker_began(task.worker, answer.state)
                self._work.states[task.worker] = task.nth, answer.state
            if not answered:
                self._wait_for_bundle()
                self._unpack_arrived()

    def _count(self, data: Any, task: Task, state: Any) -> None:
        """It counts as taken. May be done twice."""
        if state is not None and task.worker is not None:
            self._work.states[task.worker] = task.nth + 1, state
        self.progress.took(task, state)
        self._settle(task)

    def _keep_in_step(self, given: int) -> None:
        """Has the sampler asked for as many indices as torch has asked for when so many batches were given."""
        if isinstance(self._tasks, MapTasks):
            self._tasks.come_to(self._num_workers * self._prefetch_factor + given)

    def _next_done(self) -> tuple[Task, Any]:
        """The next task whose turn it is, and what became of it. The same until it is settled: Ctrl-C loses nothing."""
        out, done = self._tasks.out, self._done
        while True:
            self._unpack_arrived()
            if done and (not self._in_order or next(iter(out)) in done):
                serial = next(iter(out if self._in_order else done))
                return out[serial], done[serial]
            self._wait_for_bundle()

    def _unpack_arrived(self) -> None:
        """May be done twice."""
        bundle = self._arrived
        if bundle is None:
            return
        tasks = self._tasks.bundles[bundle.serial]
        self._done.update((task.serial, result) for task, result in zip(tasks, bundle.results, strict=True))
        if self._most > 1 and bundle.serial >= 0:
            self._tasks.size = next_size(len(tasks), self._most, bundle.seconds, bundle.results[0])
        self._figures.retries += bundle.retries
        self._arrived = None  # at once with counting: no call in between

    def _settle(self, task: Task) -> None:
        """Nobody will ask for it again."""
        self._tasks.settle(task)
        result = self._done.pop(task.serial, None)
        is_given = result is not None and type(result) is not Ended and task.serial >= 0
        self._given += is_given
        self._figures.batches += is_given

    def _wait_for_bundle(self) -> None:
        if self._stream is None:
            raise StopIteration
        if not self._recovers:
            self._pids.update(self._stream.worker_pids)
        if len(self._tasks.bundles) <= 1 and len(self._last_workers) < self._num_workers:
            self._last_workers = [WorkerHandle(pid) for pid in self._stream.worker_pids]
        try:
            for bundle in self._stream:
                self._arrived = bundle  # at once with being taken: no call in between
                break
            else:
                self._end()
                raise StopIteration
        except stoker.WorkerDied as error:
            self._pass_over()
            raise RuntimeError(self._told(error)) from error
        except Exception as error:
            self._note(error)
            raise
        if not self._recovers:
            self._check_alive()

    def _end(self) -> None:
        """By hand: what a signal's handler raises meanwhile would be lost in a finalizer."""
        if not self._persistent_workers:
            self._shutdown_workers()

    def _note(self, error: Exception) -> None:
        notes = getattr(error, "__notes__", [])
        if any(note.startswith("stoker: in worker") for note in notes):
            self._pass_over()  # it stands for a batch; others come from the sampler, or a signal's handler
        elif notes and notes[-1].startswith("stoker: the items"):
            notes.pop()  # which knows nothing of samplers

    def _check_alive(self) -> None:
        """Also of workers that had nothing to do."""
        assert self._stream is not None
        if self._stream.stats().deaths:
            gone = ", ".join(str(pid) for pid in sorted(self._pids) if not WorkerHandle(pid).is_alive())
            raise RuntimeError(f"DataLoader worker (pid(s) {gone}) exited unexpectedly")

    def _pass_over(self) -> None:
        """A bundle that failed as a whole."""
        if self._in_order:
            for task in next(iter(self._tasks.bundles.values())):
                self._tasks.settle(task)

    def _told(self, error: stoker.WorkerDied) -> str:
        if self._timeout and "timeout" in str(error):
            return f"DataLoader timed out after {self._timeout} seconds"
        by_signal = _SIGNAL.search(str(error))
        if by_signal is None:
            return f"DataLoader worker (pid(s) {error.pid}) exited unexpectedly: {error}"
        name = signal.strsignal(int(by_signal[1]))
        return f"DataLoader worker (pid {error.pid}) is killed by signal: {name}. {error}"

    def _most_at_a_time(self, loader: Any) -> int:
        """More than one only where it is known what happens if a sampler is ahead, or a batch waits for others."""
        if not self._in_order or self._timeout or not self._is_known or loader._has_links:
            return 1
        is_iterable = self._dataset_kind == _DatasetKind.Iterable
        return most_at_a_time(None if is_iterable else len(self._index_sampler), self._num_workers)

    def _new_tasks(self) -> MapTasks | IterableTasks:
        """What there is to do from where the consumer is."""
        if self._dataset_kind != _DatasetKind.Iterable:
            return MapTasks(
                self._sampler_iter,
                self.progress,
                pinned=self._is_pinned,
                in_order=self._in_order,
                greets=self._greets,
            )
        return IterableTasks(next(self._sampler_iter), self.progress, in_order=self._in_order, greets=self._greets)

    def _new_work(self, loader: Any, saved: SavedState | None) -> Work:
        init_fn = loader.worker_init_fn
        if isinstance(self._dataset, (IterDataPipe, MapDataPipe)):
            init_fn = functools.partial(_sharding_worker_init_fn, init_fn, self._world_size, self._rank)
        return Work(
            self._dataset_kind,
            self._dataset,
            self._auto_collation,
            self._collate_fn,
            self._drop_last,
            self._base_seed,
            self._shared_seed,
            init_fn,
            self._num_workers,
            seed=loader.seed,
            retry=loader._retry,
            epoch=loader._epoch,
            states={} if saved is None or not saved.tells_datasets else saved.snapshot.states(),
        )

    def _shutdown_workers(self) -> None:
        stream = self._stream
        if stream is not None:
            if pids := stream.worker_pids:
                self._last_workers = [WorkerHandle(pid) for pid in pids]
            self._stream = None
            stream.close()


def _worker_of(bundle: tuple[Task, ...], *, count: int, at_once: int) -> int | None:
    """Out of order, as in torch: the first tasks in turn, others whoever has least to do. Slow ones keep them."""
    task = bundle[0]
    return task.serial % count if task.worker is None and task.serial < at_once else task.worker


def _opened(batch: SealedBatch, give_up: Callable[[], object]) -> Any:
    try:
        return batch.opened()
    except Exception:  # of a signal's handler, and then it can be opened; or of a class of the user's, once more
        with stoker.put_off():
            try:
                return batch.opened()
            except Exception:
                give_up()
                raise
