"""Where workers live, as users say it: ``Inline()``, ``Threads(n)``, ``Processes(n, start=...)``, a number, "auto"."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from stoker.workers.backend import Site
from stoker.workers.inline import InlineBackend
from stoker.workers.threads import ThreadsBackend
from stoker.workers.worker import Job

_STARTS = ("nursery", "fork", "spawn")


@dataclass(frozen=True)
class Inline:
    """No workers: each batch is made in the consumer's own thread when it is asked for. For debugging and tests."""

    n = 1

    def prepare(self, job: Job) -> Site:
        return Site(lambda slots, store: InlineBackend(job, slots, store))


@dataclass(frozen=True)
class Threads:
    """``n`` threads of this process: for datasets that wait for a network or a disk, or release the GIL.

    Example:
        >>> import stoker
        >>> stoker.Threads(8)
        Threads(n=8)
    """

    n: int

    def __post_init__(self) -> None:
        _check_count("Threads", self.n)

    def prepare(self, job: Job) -> Site:
        return Site(lambda slots, store: ThreadsBackend(job, slots, store))


@dataclass(frozen=True)
class Processes:
    """``n`` worker processes.

    Args:
        n: How many.
        start: ``"nursery"``, forked from a clean helper process: safe and quick, the default. ``"fork"``, forked from
            this very process: quickest, nothing is pickled, but unsafe where threads, CUDA or JAX run.
            ``"spawn"``, a fresh interpreter each: slowest, shares nothing.
        environments: With ``"spawn"``: a dict of environment variables for each worker, beside those of this process.
            They are set before anything is imported, as ``CUDA_VISIBLE_DEVICES`` must be.

    Example:
        >>> import stoker
        >>> stoker.Processes(4, start="spawn")
        Processes(n=4, start='spawn')
    """

    n: int
    start: Literal["nursery", "fork", "spawn"] = "nursery"
    environments: Sequence[Mapping[str, str]] | None = field(default=None, repr=False, hash=False)

    def __post_init__(self) -> None:
        _check_count("Processes", self.n)
        if self.start not in _STARTS:
            raise ValueError(f"Processes(start={self.start!r}): write one of {', '.join(map(repr, _STARTS))}")
        if self.environments is not None:
            if self.start != "spawn":
                raise ValueError(
                    f"Processes(start={self.start!r}, environments=...): a forked worker has imports behind it that "
                    f'may have read its variables. Write start="spawn"'
                )
            object.__setattr__(self, "environments", _checked_environments(self.environments, self.n))

    def prepare(self, job: Job) -> Site:
        """Pickles the job now, so that what can't travel is said before any process starts."""
        from stoker.workers.processes import prepare  # when used: it is a quarter of what importing stoker costs

        return prepare(self.start, job, self.environments or ())


Workers = Inline | Threads | Processes


def workers_of(workers: Any) -> Workers:
    """What ``Loader(workers=...)`` may be given."""
    if isinstance(workers, Inline | Threads | Processes):
        return workers
    if isinstance(workers, str) and workers == "auto":
        return Processes(usable_cores())
    if isinstance(workers, int) and not isinstance(workers, bool) and workers >= 0:
        return Processes(workers) if workers else Inline()
    raise ValueError(
        f"workers={workers!r}: write a number of processes (0: none), 'auto', stoker.Inline(), stoker.Threads(n) "
        f"or stoker.Processes(n)"
    )


def usable_cores() -> int:
    """Cores that this process may use: its affinity, and the limit of its cgroup where one is set."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        with open("/sys/fs/cgroup/cpu.max") as file:
            quota, period = file.read().split()
        return cores if quota == "max" else max(1, min(cores, int(quota) // int(period)))
    except (OSError, ValueError):
        return cores


def _check_count(name: str, n: Any) -> None:
    if not isinstance(n, int) or isinstance(n, bool) or n < 1:
        raise ValueError(f"{name}({n!r}): write the number of workers, 1 or more")


def _checked_environments(environments: Any, n: int) -> tuple[dict[str, str], ...]:
    if isinstance(environments, str | bytes | Mapping) or not isinstance(environments, Sequence):
        raise TypeError(f"Processes(environments={environments!r}): write a list of dicts, one for each worker")
    if len(environments) != n:
        raise ValueError(f"Processes({n}, environments=[{len(environments)} in all]): write one dict for each worker")
    return tuple(_checked_variables(variables) for variables in environments)


def _checked_variables(variables: Any) -> dict[str, str]:
    """Our own copy, so that it stays as it is."""
    if not isinstance(variables, Mapping):
        raise TypeError(f"Processes(environments=[... {variables!r} ...]): write a dict of variables")
    for name, value in variables.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise TypeError(f"Processes(environments=[... {{{name!r}: {value!r}}} ...]): write both as strings")
        if not name or "=" in name or "\0" in name + value:
            raise ValueError(f"Processes(environments=[... {{{name!r}: {value!r}}} ...]): no variable can be that")
    return dict(variables)
