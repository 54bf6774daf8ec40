"""Streams: an ordered parallel map over items, whose results land in shared memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sized
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from stoker.bridges import Framework
from stoker.engine import Delivery
from stoker.observe import ErrorPolicy, Failures, OnError, Stats
from stoker.plan import Plan, from_state, to_state
from stoker.session import Session, Settings
from stoker.sources import ENDLESS, Items, ItemSource
from stoker.workers import Inline, Workers
from stoker.workers.worker import Job

if TYPE_CHECKING:
    import typing_extensions

    R = typing_extensions.TypeVar("R", default=Any)
else:
    R = TypeVar("R")


class Stream(Generic[R]):
    """What ``stoker.stream`` gives: an iterator over the results, and a context manager.

    It ends its workers when the items have ended, when it is closed, and when nobody has it any more.
    """

    def __init__(self, session: Session, items: Items, count: int | None) -> None:
        self._session, self._items, self._count = session, items, count
        self._ended = False

    def __iter__(self) -> Stream[R]:
        return self

    def __next__(self) -> R:
        delivery = self._take()
        if delivery is None:
            raise StopIteration
        return delivery.data  # type: ignore[no-any-return]

    def __len__(self) -> int:
        """Items in all, where they can tell."""
        if self._count is None:
            raise TypeError("the items of this stream have no length, so it has none either")
        return self._count

    def state_dict(self) -> dict[str, Any]:
        """How many items the consumer has got the results of, as a dict that JSON can hold."""
        return to_state(self._session.cursor, self._session.plan)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on after the last result that was taken when ``state`` was saved.

        The items must be the same, in the same order: those that were done are pulled again and passed over.

        Raises:
            StateError: The state is damaged, or of a stream with another seed.
        """
        self._session.jump(from_state(state, self._session.plan))
        self._ended = False

    @property
    def worker_pids(self) -> list[int]:
        """The worker processes that are up; none before the start, nor of threads."""
        return self._session.pids()

    def stats(self) -> Stats:
        """Figures since the start, as a ``Loader`` has them; an item counts as a batch of one sample."""
        return self._session.stats()

    def close(self) -> None:
        """Ends the workers and frees the memory, but for results that are still held. May be called twice."""
        self._session.close()

    def __enter__(self) -> Stream[R]:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _take(self) -> Delivery | None:
        if self._ended:
            return None
        delivery = self._session.take()
        if delivery is None:
            self._items.raise_error()
            self._ended = True
            self._session.close()
        return delivery


def stream(
    work: Callable[[Any], Any],
    items: Iterable[Any],
    *,
    workers: int | Literal["auto"] | Workers = 0,
    prefetch: int = 2,
    in_order: bool = True,
    seed: int = 0,
    on_error: OnError = "raise",
    max_errors: int | None = None,
    quarantine: str | os.PathLike[str] | None = None,
    timeout: float | None = None,
    max_deaths: int = 3,
    to: Framework | Callable[[Any], R] | None = None,
    device: Any = None,
    to_device: Callable[..., Any] | None = None,
    max_on_device: int = 2,
) -> Stream[R]:
    """Does ``work(item)`` in background workers, and gives the results in the order of the items, uncopied.

    Args:
        work: Gets an item; gives any tree of arrays, numbers and strings. It travels to the workers once.
        items: Any iterable, also an endless one. They are pulled in the consumer's thread, when it asks for a result;
            on the way to a device, by the thread that moves results. No further ahead than ``workers * prefetch``.
        workers: A number of processes (0: none), "auto", ``Inline()``, ``Threads(n)`` or ``Processes(n, start=...)``.
        prefetch: Items under way or done ahead, per worker.
        in_order: False: results come as they are done.
        seed: Of all random numbers that ``work`` draws: they follow from it and the item's number.
        on_error: What becomes of an item over which ``work`` raises, kills its worker ``max_deaths`` times or exceeds
            ``timeout`` as often: "raise", "skip" or "quarantine", as in ``Loader``.
        max_errors: Items that may be left out. None: any number.
        quarantine: The file for on_error="quarantine"; None: ``quarantine.jsonl``.
        timeout: Seconds that a worker may take for an item.
        max_deaths: Workers that may die over one item before it is given up.
        to: "numpy", "torch", "jax", "tensorflow", "tinygrad", or a callable that gets each result.
        device: Where ``to``'s framework is to put it.
        to_device: As in ``Loader``.
        max_on_device: As in ``Loader``.

    Example:
        >>> import numpy as np, stoker
        >>> with stoker.stream(np.arange, [1, 2, 3]) as results:
        ...     [result.tolist() for result in results]
        [[0], [0, 1], [0, 1, 2]]
    """
    if not callable(work):
        raise TypeError(f"work={work!r}: write a function that gets an item")
    if not isinstance(items, Iterable):
        raise TypeError(f"items={items!r}: write an iterable, such as a list, or a generator, which may be endless")
    if isinstance(max_errors, float):
        raise TypeError(f"max_errors={max_errors!r}: nobody knows of how many items; write a whole number of them")
    policy = ErrorPolicy(on_error, max_errors, quarantine)
    plan = Plan(ENDLESS, None, seed=seed)
    settings = Settings.checked(
        workers=workers,
        prefetch=prefetch,
        in_order=in_order,
        timeout=timeout,
        max_deaths=max_deaths,
        policy=policy,
        to=to,
        device=device,
        to_device=to_device,
        max_on_device=max_on_device,
    )
    pulled = Items(items, ahead=not isinstance(settings.workers, Inline))
    session = Session(
        "stream",
        plan,
        length_known=True,
        job=Job(ItemSource(work), plan, None, policy.leaves_out),
        settings=settings,
        failures=Failures(policy, what="item"),
        items=pulled,
    )
    return Stream(session, pulled, len(items) if isinstance(items, Sized) else None)
