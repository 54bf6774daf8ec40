"""Where workers live, as users say it: ``Inline()``, ``Threads(n)``, ``Processes(n, start=...)``, ``Auto()``, a number.

Each kind has a ``count`` of workers, ``traits`` that the engine goes by, and prepares a site for a job. ``Ray(n)`` is
in ``ray_options.py``.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from stoker.counts import checked_count
from stoker.shadows import shadows_explained
from stoker.systems import check_processes
from stoker.workers.inline import InlineBackend
from stoker.workers.ray_options import Ray
from stoker.workers.site import OwnSite, Site
from stoker.workers.snapshot import Attributes
from stoker.workers.threads import ThreadsBackend
from stoker.workers.traits import Traits
from stoker.workers.worker import Job

_STARTS = ("nursery", "fork", "spawn")
_REMEDY = "the number of workers, 1 or more"
_MANY = 32  # workers of ``Auto``, at most, unless there are many cores
_MOST_AHEAD = 4  # times ``prefetch``: with as many batches ready, more would not make up for slow ones either
_RUN_S = 0.003  # of work in a run: fifty times what handing it out costs
_RUN_BYTES = 2**22 - 2**16  # with layouts and table it fits a slot of 4 MiB


@dataclass(frozen=True)
class Inline:
    """No workers: each batch is made in your own thread when you ask for it. For debugging and tests."""

    n: ClassVar[int] = 1
    count: ClassVar[int] = 1
    traits: ClassVar[Traits] = Traits(is_inline=True)

    def prepare(self, job: Job) -> Site:
        _load_generators()
        return OwnSite(job, InlineBackend)


@dataclass(frozen=True)
class Threads:
    """``n`` worker threads in this process, for datasets that wait for a network or a disk, or release the GIL.

    Example:
        >>> import stoker
        >>> stoker.Threads(8)
        Threads(n=8)
    """

    n: int
    traits: ClassVar[Traits] = Traits(shares_interpreter=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", checked_count("n", self.n, _REMEDY, of="Threads"))

    @property
    def count(self) -> int:
        return self.n

    def prepare(self, job: Job) -> Site:
        _load_generators()
        return OwnSite(job, ThreadsBackend, Attributes)


@dataclass(frozen=True)
class Processes:
    """``n`` worker processes.

    Args:
        n: The number of processes.
        start: How they are started. "nursery": forked from a clean helper process, which is safe and quick. "fork":
            forked from this process, which is quickest and pickles nothing, but is unsafe if threads, CUDA or JAX run
            in it. "spawn": each is a new interpreter, which is slowest and shares nothing.
            Where the system is not Linux, "nursery" is "spawn": there a program may not fork after its imports.
        environments: With start="spawn", a dict of environment variables for each worker, in addition to those of this
            process. They are set before anything is imported, as ``CUDA_VISIBLE_DEVICES`` must be.

    Raises:
        ValueError: An argument has a wrong value.
        NotImplementedError: The system is Windows.

    Example:
        >>> import stoker
        >>> stoker.Processes(4, start="spawn")
        Processes(n=4, start='spawn')
    """

    n: int
    traits: ClassVar[Traits] = Traits(imports_modules=True, run_seconds=_RUN_S, run_bytes=_RUN_BYTES)
    start: Literal["nursery", "fork", "spawn"] = "nursery"
    environments: Sequence[Mapping[str, str]] | None = field(default=None, repr=False, hash=False)

    def __post_init__(self) -> None:
        check_processes(self)
        object.__setattr__(self, "n", checked_count("n", self.n, _REMEDY, of="Processes"))
        if self.start not in _STARTS:
            raise ValueError(f"Processes(start={self.start!r}): pass one of {', '.join(map(repr, _STARTS))}")
        if self.environments is not None:
            if self.start != "spawn":
                raise ValueError(
                    f"Processes(start={self.start!r}, environments=...): a forked worker has imported modules "
                    f'already, which may have read the variables. Pass start="spawn"'
                )
            object.__setattr__(self, "environments", _checked_environments(self.environments, self.n))

    @property
    def count(self) -> int:
        return self.n

    def prepare(self, job: Job) -> Site:
        """Pickles the job now, so that what can't travel is said before any process starts."""
        with shadows_explained():
            from stoker.workers.processes import prepare  # when used: it is a quarter of what importing stoker costs

            return prepare(self.start, job, self.environments or ())


@dataclass(frozen=True)
class Auto:
    """Worker processes whose number is found by measurement, and changed while batches flow. The stream is the same.

    There is one process for each core at first. More are started while the consumer waits for batches and another
    process brings more of them, as it does where samples come from a network; those that bring nothing, or are not
    needed, are retired. If workers idle while the consumer waits, ``prefetch`` is multiplied by up to 4. All stays
    within the CPU quota and the memory of the machine and of its cgroup. ``workers="auto"`` is ``Auto()``.

    Args:
        least: The smallest number of processes.
        most: The largest number. None: 32, or twice the number of cores if that is more.

    Raises:
        ValueError: An argument is no whole number of 1 or more, or ``most`` is below ``least``.
        NotImplementedError: The system is Windows.

    Example:
        >>> import stoker
        >>> stoker.Auto(most=8)
        Auto(least=1, most=8)
    """

    least: int = 1
    most: int | None = None
    traits: ClassVar[Traits] = Traits(
        is_announced=True,
        is_elastic=True,
        most_ahead=_MOST_AHEAD,
        imports_modules=True,
        run_seconds=_RUN_S,
        run_bytes=_RUN_BYTES,
    )

    def __post_init__(self) -> None:
        check_processes(self)
        object.__setattr__(self, "least", checked_count("least", self.least, _REMEDY, of="Auto"))
        if self.most is None:
            return
        object.__setattr__(self, "most", checked_count("most", self.most, _REMEDY, of="Auto"))
        if self.most < self.least:
            raise ValueError(f"Auto(least={self.least}, most={self.most}): pass least and most with least <= most")

    @property
    def n(self) -> int:
        """The number of processes at the start."""
        return max(self.least, min(usable_cores(), self.count))

    @property
    def count(self) -> int:
        """The largest number of them."""
        return max(self.least, _MANY, 2 * usable_cores()) if self.most is None else self.most

    def prepare(self, job: Job) -> Site:
        """Pickles the job now, so that what can't travel is said before any process starts."""
        with shadows_explained():
            from stoker.workers.auto import ElasticSite

            limits = {"first": self.n, "least": self.least, "most": self.count}
            return ElasticSite(job, **limits, cores=usable_cores(), most_ahead=_MOST_AHEAD, consumers=consumers_here())


Workers = Inline | Threads | Processes | Auto | Ray


def workers_of(workers: Any) -> Workers:
    """What ``Loader(workers=...)`` may be given."""
    if isinstance(workers, Inline | Threads | Processes | Auto | Ray):
        return workers
    if isinstance(workers, str) and workers == "auto":
        return Auto()
    if isinstance(workers, int) and not isinstance(workers, bool) and workers >= 0:
        return Processes(workers) if workers else Inline()
    raise ValueError(
        f"workers={workers!r}: pass a number of processes (0: none), 'auto', stoker.Inline(), stoker.Threads(n), "
        f"stoker.Processes(n), stoker.Auto() or stoker.Ray(n)"
    )


def usable_cores(cgroups: str = "/sys/fs/cgroup") -> int:
    """Cores that this process may use: its share of its affinity, and of the limit of its cgroup where one is set."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, int(min(cores, _quota(cgroups))) // consumers_here())


def consumers_here() -> int:
    """Processes that share this machine, as torchrun and the like say in LOCAL_WORLD_SIZE."""
    sharing = os.environ.get("LOCAL_WORLD_SIZE", "")
    return max(1, int(sharing)) if sharing.isdecimal() else 1


def _quota(cgroups: str) -> float:
    """Cores that the cgroup may use, whether it is of version 2 or 1."""
    files = (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us"))
    for names in files:
        try:
            quota, period = " ".join(_content(os.path.join(cgroups, name)) for name in names).split()
            return math.inf if quota in ("max", "-1") else int(quota) / int(period)
        except (OSError, ValueError, ZeroDivisionError):
            continue
    return math.inf


def _content(path: str) -> str:
    with open(path) as file:  # pathlib takes 5 ms to import
        return file.read()


def _load_generators() -> None:
    """NumPy does when it first seeds them: in a thread, that would hang if the script is called ``secrets.py``."""
    with shadows_explained():
        import numpy.random  # noqa: F401


def _checked_environments(environments: Any, n: int) -> tuple[dict[str, str], ...]:
    if isinstance(environments, str | bytes | Mapping) or not isinstance(environments, Sequence):
        raise TypeError(f"Processes(environments={environments!r}): pass a list of dicts, one for each worker")
    if len(environments) != n:
        raise ValueError(f"Processes({n}, environments=[{len(environments)} in all]): pass one dict for each worker")
    return tuple(_checked_variables(variables) for variables in environments)


def _checked_variables(variables: Any) -> dict[str, str]:
    """Our own copy, so that it stays as it is."""
    if not isinstance(variables, Mapping):
        raise TypeError(f"Processes(environments=[... {variables!r} ...]): pass a dict of variables")
    for name, value in variables.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise TypeError(f"Processes(environments=[... {{{name!r}: {value!r}}} ...]): pass both as strings")
        if not name or "=" in name or "\0" in name + value:
            raise ValueError(f"Processes(environments=[... {{{name!r}: {value!r}}} ...]): no variable can be that")
    return dict(variables)
