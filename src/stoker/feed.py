"""The feed: what happens to a batch between the engine and the consumer. Knows no loader, so one can be forgotten."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter_ns
from typing import Any

from stoker.bridges import Conveyor, landed
from stoker.engine import Delivery, Driver
from stoker.plan import Batch, Plan
from stoker.sources import Items


class Feed:
    """Takes batches from the engine and through the bridge, ahead of the consumer if they go to a device.

    Args:
        driver: The engine, which from now on is used by nobody else.
        bridge: What each batch goes through, if anything.
        ahead: Batches to move ahead, in a thread; 0: each is moved when it is asked for.
    """

    def __init__(self, driver: Driver, bridge: Callable[[Any], Any] | None, ahead: int) -> None:
        self._driver = driver
        self._bridge = bridge
        self._ahead = ahead
        self._conveyor: Conveyor[Delivery] | None = None

    def length(self) -> int:
        """The dataset's length, as a worker finds it. To be asked for before the first ``seek``."""
        return self._driver.length()

    def seek(self, batches: Iterator[Batch], plan: Plan, longest_run: int, warm_up: float = 0.0) -> None:
        """From now on these batches, and nothing of what was before. ``warm_up``: seconds to let workers get ahead."""
        self._driver.seek(batches, plan, longest_run)
        self._driver.warm_up(warm_up)
        self._move_ahead()

    def follow(self, items: Items, plan: Plan, warm_up: float = 0.0) -> None:
        """The same, of items, as they come."""
        self._driver.follow(items, plan)
        self._driver.warm_up(warm_up)
        self._move_ahead()

    def take(self) -> Delivery:
        """The next batch. Blocks only while none is ready."""
        if self._conveyor is not None:
            began = perf_counter_ns()
            return self._conveyor.take()._replace(waited=perf_counter_ns() - began)
        delivery = self._pull()
        assert delivery is not None
        return delivery

    def halt(self) -> bool:
        """Ends the thread, if there is one. Whether the engine can be used further: see ``Driver.is_sound``."""
        if self._conveyor is not None:
            self._conveyor.stop()
            self._conveyor = None  # last, so that whoever is interrupted can halt again
        return self._driver.is_sound

    def pids(self) -> list[int]:
        return self._driver.pids()

    def close(self) -> None:
        try:
            self.halt()
        finally:
            self._driver.close()

    def _move_ahead(self) -> None:
        if self._ahead:
            self._conveyor = Conveyor(self._pull, self._driver.interrupt, self._ahead)
            self._conveyor.start()

    def _pull(self) -> Delivery | None:
        delivery = self._driver.take()
        if self._bridge is None or delivery is None or delivery.made is None or not delivery.made.samples:
            return delivery
        began = perf_counter_ns()
        try:
            # In its place, so that its memory is free as soon as what became of it is.
            delivery = delivery._replace(data=landed(self._bridge(delivery.data)))
        except Exception as error:
            delivery = delivery._replace(data=None, error=error)
        return delivery._replace(moving=perf_counter_ns() - began)
