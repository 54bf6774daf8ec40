"""How work is done: by whom, how far ahead, in which order, and where results go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from stoker.arguments import checked_flag, checked_timeout
from stoker.bridges import bridge, goes_elsewhere
from stoker.counts import checked_count
from stoker.observe import ErrorPolicy, Setup
from stoker.observe.page import Watch, checked_watch
from stoker.plan import Plan
from stoker.sources import Retry, checked_retry
from stoker.workers import Workers, workers_of

_RUNS_PER_WORKER = 8  # in an epoch, at least: with fewer, one worker might have much more to do than another
_UNDER_WAY = 2  # batches that a worker may have beside those that are ready: the one it makes, and the next


@dataclass(frozen=True)
class Settings:
    """How work is done, whatever it is. ``on_device``: what is made is moved ahead by a thread, so many at a time."""

    workers: Workers
    prefetch: int
    in_order: bool
    timeout: float | None
    max_deaths: int
    policy: ErrorPolicy
    bridge: Callable[[Any], Any] | None
    on_device: int
    observe: bool = True
    watch: Watch | None = None
    progress: bool = False
    retry: Retry | None = None

    @classmethod
    def checked(
        cls,
        *,
        workers: int | Literal["auto"] | Workers,
        prefetch: int,
        in_order: bool,
        timeout: float | None,
        max_deaths: int,
        policy: ErrorPolicy,
        retry: int | Retry,
        to: Any,
        device: Any,
        to_device: Any,
        max_on_device: int,
        observe: bool,
        watch: bool | Watch,
        progress: bool,
    ) -> Settings:
        found = workers_of(workers)
        ahead = checked_count("max_on_device", max_on_device, "a number of batches, 1 or more")
        return cls(
            found,
            checked_count("prefetch", prefetch, "a number of batches per worker, 1 or more"),
            checked_flag("in_order", in_order),
            checked_timeout(timeout),
            checked_count("max_deaths", max_deaths, "a number of deaths over one batch, 1 or more"),
            policy,
            bridge(to, device, to_device),
            ahead if goes_elsewhere(device, to_device) and not found.traits.is_inline else 0,
            checked_flag("observe", observe),
            checked_watch(watch),
            checked_flag("progress", progress),
            checked_retry(retry),
        )

    @property
    def ahead(self) -> int:
        """Batches that may be under way, or ready, and not yet taken."""
        workers = self.workers
        return workers.count * (self.prefetch * workers.traits.most_ahead + _UNDER_WAY) + self.on_device

    @property
    def usually_ahead(self) -> int:
        """The same, but for workers that may come beside those at the start."""
        return self._first * (self.prefetch + _UNDER_WAY) + self.on_device

    @property
    def _first(self) -> int:
        """Workers at the start."""
        return self.workers.n if self.workers.traits.is_elastic else self.workers.count

    def completed(self, setup: Setup) -> Setup:
        """The same for who reads figures, with what the front knows in ``setup``."""
        traits = self.workers.traits
        return replace(
            setup,
            backend=type(self.workers).__name__,
            prefetch=self.prefetch,
            in_order=self.in_order,
            on_device=self.on_device,
            is_here=traits.is_here,
            shares_interpreter=traits.shares_interpreter,
        )

    def longest_run(self, plan: Plan) -> int:
        """Batches that a worker may make in one go: only where order keeps a slow one from being overtaken anyway."""
        if not self.workers.traits.run_seconds or not self.in_order or plan.times > 1:
            return 1  # rotating samples must not get too far apart
        return max(1, plan.rounds // (_RUNS_PER_WORKER * self._first))
