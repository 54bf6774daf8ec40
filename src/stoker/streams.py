"""Streams: an ordered parallel map over items, whose results land in shared memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, Unpack, overload

from stoker.agenda import ItemAgenda
from stoker.arguments import (
    answers_unknown_names,
    check_replacing,
    checked_flag,
    checked_init,
    checked_items,
    checked_worker_of,
    named,
)
from stoker.bridges import Framework
from stoker.engine import Delivery
from stoker.front import Front
from stoker.observe import ErrorPolicy, Failures, OnError, Setup
from stoker.observe.page import Observed, Watch
from stoker.session import Session
from stoker.settings import Settings
from stoker.sources import ItemSource, Retry
from stoker.workers import Workers
from stoker.workers.worker import Job

if TYPE_CHECKING:
    import typing_extensions

    from stoker.options import StreamOptions

    R_co = typing_extensions.TypeVar("R_co", covariant=True, default=Any)
else:
    R_co = TypeVar("R_co", covariant=True)

Item = TypeVar("Item")
R = TypeVar("R")


class Stream(Front, Generic[R_co]):
    """What ``stoker.stream`` returns: an iterator over the results, and a context manager.

    Its workers stop when the items have ended (unless ``keep_workers=True``), when it is closed, and when it is garbage
    collected.
    """

    def __init__(self, session: Session, agenda: ItemAgenda, work: str, *, keep_workers: bool) -> None:
        self._session, self._agenda, self._work = session, agenda, work
        self._keep_workers = keep_workers
        self._ended = self._is_shown = False

    def __iter__(self) -> Stream[R_co]:
        return self

    def __next__(self) -> R_co:
        delivery = self._take()
        if delivery is None:
            raise StopIteration
        # Without a call from here on: an interrupt comes either before it is counted, or when the caller has it.
        result, delivery.data, delivery.is_taken = delivery.data, None, True
        return result  # type: ignore[no-any-return]

    def __len__(self) -> int:
        """The number of items. A ``TypeError`` if the items have no length."""
        return len(self._agenda)

    def state_dict(self) -> dict[str, Any]:
        """How many results the consumer has taken, as a dict that JSON can hold."""
        return self._session.state()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continues after the last result that was taken when ``state`` was saved.

        The items must be the same, in the same order: those that were done are pulled again and skipped.

        Raises:
            StateError: The state is damaged, or was saved by a stream with another seed.
        """
        self._session.load(state)
        self._ended = self._is_shown = False

    def restart(self, items: Iterable[Any]) -> None:
        """Begins with other items, on the same workers. What was prefetched of the old ones is thrown away.

        With ``keep_workers=True``, also after the items have ended.

        Raises:
            ClosedError: The stream was closed.

        Example:
            >>> import stoker
            >>> with stoker.stream(abs, [-1, -2], keep_workers=True) as results:
            ...     print(list(results))
            ...     results.restart([-3])
            ...     print(list(results))
            [1, 2]
            [3]
        """
        self._session.check_usable()
        self._agenda.units.begin(checked_items(items))
        self._session.go_to(0)
        self._ended = self._is_shown = False

    def warm_up(self, seconds: float = 0.0) -> None:
        """Starts the workers and has them begin before the first result is asked for, as far as ``prefetch`` allows.

        Args:
            seconds: How long to wait for them. 0: not at all.
        """
        self._session.warm_up(seconds)

    @property
    def observed(self) -> Observed:
        """Its ``stats()`` and ``report()``, also once the stream is gone. Keeps no workers alive."""
        return self._session.showing.observed

    def __repr__(self) -> str:
        of_all = f" of {len(self)}" if self._agenda.has_length else ""
        return f"Stream({self._work}, {self._session.stats().batches}{of_all} items taken, {self._session.phase()})"

    def _take(self) -> Delivery | None:
        if self._ended:
            return None
        if not self._is_shown:
            self._is_shown = True
            self._session.showing.show_progress(self._work, self)
        delivery = self._session.offer()
        if delivery is None:
            self._ended = True
            if not self._keep_workers:
                self._session.close()
        return delivery


# What type a result has, for type checkers; the last signature is the one there is: docs/design/types.md.
@overload
def stream(
    work: Callable[[Item], R],
    items: Iterable[Item],
    *,
    to: None = None,
    to_device: None = None,
    **options: Unpack[StreamOptions],
) -> Stream[R]: ...
@overload
def stream(
    work: Callable[[Item], Any],
    items: Iterable[Item],
    *,
    to: Callable[[Any], R],
    to_device: None = None,
    **options: Unpack[StreamOptions],
) -> Stream[R]: ...
@overload
def stream(
    work: Callable[[Item], Any],
    items: Iterable[Item],
    *,
    to: Framework,
    to_device: Callable[..., Any] | None = None,
    **options: Unpack[StreamOptions],
) -> Stream[Any]: ...
@overload
def stream(
    work: Callable[[Item], Any],
    items: Iterable[Item],
    *,
    to: Framework | Callable[[Any], Any] | None = None,
    to_device: Callable[..., Any],
    **options: Unpack[StreamOptions],
) -> Stream[Any]: ...
@answers_unknown_names
def stream(
    work: Callable[[Any], Any],
    items: Iterable[Any],
    *,
    seed: int | None = 0,
    workers: int | Literal["auto"] | Workers = 0,
    prefetch: int = 2,
    in_order: bool = True,
    init: Callable[[], object] | None = None,
    worker_of: Callable[[Any], int | None] | None = None,
    keep_workers: bool = False,
    on_error: OnError = "raise",
    max_errors: int | None = None,
    quarantine: str | os.PathLike[str] | None = None,
    retry: int | Retry = 0,
    timeout: float | None = None,
    max_deaths: int = 3,
    to: Framework | Callable[[Any], Any] | None = None,
    device: Any = None,
    to_device: Callable[..., Any] | None = None,
    max_on_device: int = 2,
    observe: bool = True,
    watch: bool | Watch = False,
    progress: bool = False,
) -> Stream[Any]:
    """Calls ``work(item)`` in background workers, and yields the results in the order of the items, in shared memory.

    Args: What is done
        work: A function that gets an item and returns any tree of arrays, numbers and strings. It is sent to the
            workers once.
        items: Any iterable, also an endless one. Items are pulled in your thread, when you ask for a result; with a
            device, in the thread that moves results. They are pulled at most ``workers * prefetch`` ahead.
        seed: Seeds all random generators in workers, for each item anew, from the seed and the item's number. None:
            they are left alone.

    Args: Workers
        workers: The number of worker processes (0: none), "auto", ``Auto()``, ``Inline()``, ``Threads(n)``,
            ``Processes(n, start=...)`` or ``Ray(n, ...)``.
        prefetch: The number of items that are in work or done ahead, per worker; 2 by default.
        in_order: False: results arrive in the order in which they are finished.
        init: A function without arguments that is called once in each worker before the first item, as in ``Loader``.
        worker_of: A function that gets an item and returns the number of the worker, from 0 on, that alone may work on
            it; one that takes a dead worker's place has its number. For work that keeps something from item to item.
            It may return None: whoever is free then, and no other takes the item over from a slow worker.
            None: whoever is free.
        keep_workers: True: workers stay when the items have ended, for ``Stream.restart``.

    Args: Failures
        on_error: What to do with an item over which ``work`` raises, kills its worker ``max_deaths`` times or exceeds
            ``timeout`` that often: "raise", "skip" or "quarantine", as in ``Loader``.
        max_errors: The number of items that may be left out. None: any number.
        quarantine: The file for on_error="quarantine". None: ``quarantine.jsonl``.
        retry: As in ``Loader``, for ``work(item)``.
        timeout: The number of seconds that a worker may take for an item. None: no limit.
        max_deaths: The number of workers that may die over one item before Stoker gives the item up; 3 by default.

    Args: Frameworks and devices
        to: "numpy", "torch", "jax", "tensorflow", "tinygrad", "arrow", or a function that gets each result.
        device: The device on which the framework of ``to`` puts the result.
        to_device: As in ``Loader``.
        max_on_device: As in ``Loader``.

    Args: Watching
        observe: As in ``Loader``.
        watch: As in ``Loader``; the page is there from the beginning.
        progress: As in ``Loader``.

    Returns:
        A ``Stream``: an iterator over the results, and a context manager.

    Raises:
        TypeError: An argument has the wrong type, or is unknown.
        ValueError: An argument has a wrong value. Bad arguments are found before any process starts.

    Example:
        >>> import numpy as np, stoker
        >>> with stoker.stream(np.arange, [1, 2, 3]) as results:
        ...     [result.tolist() for result in results]
        [[0], [0, 1], [0, 1, 2]]
    """
    if not callable(work):
        raise TypeError(f"work={work!r}: pass a function that takes an item")
    if isinstance(max_errors, float):
        raise TypeError(f"max_errors={max_errors!r}: the number of items is not known, so pass a number, not a share")
    policy = ErrorPolicy(on_error, max_errors, quarantine)
    check_replacing(policy, "items")
    settings = Settings.checked(
        workers=workers,
        prefetch=prefetch,
        in_order=in_order,
        timeout=timeout,
        max_deaths=max_deaths,
        policy=policy,
        retry=retry,
        to=to,
        device=device,
        to_device=to_device,
        max_on_device=max_on_device,
        observe=observe,
        watch=watch,
        progress=progress,
    )
    agenda = ItemAgenda(
        checked_items(items),
        seed=0 if seed is None else seed,
        ahead=not settings.workers.traits.is_inline,
        worker_of=checked_worker_of(worker_of, settings.workers),
    )
    session = Session(
        "stream",
        agenda,
        job=Job(
            ItemSource(work),
            agenda.plan,
            None,
            policy.leaves_out,
            init=checked_init(init),
            may_change=False,
            retry=settings.retry,
            seeds=seed is not None,
        ),
        settings=settings,
        failures=Failures(policy),
        setup=Setup(making="work(item)", pulls=True),
    )
    session.showing.title = f"stream({named(work)})"
    session.showing.watch()
    return Stream(session, agenda, named(work), keep_workers=checked_flag("keep_workers", keep_workers))
