"""``Ray(n)``: workers on the machines of a Ray cluster, as users say it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from stoker.counts import checked_count
from stoker.redaction import redacted_text
from stoker.shadows import shadows_explained
from stoker.systems import check_processes
from stoker.workers.site import Site
from stoker.workers.traits import Traits
from stoker.workers.worker import Job

_PLACEMENTS = ("spread", "pack")
_RUN_S = 0.03  # of work in a run: some thirty times what a call costs over both sides
_RUN_BYTES = 2**24 - 2**18  # with layouts and table it fits 16 MiB


@dataclass(frozen=True)
class Ray:
    """``n`` workers that are actors of a Ray cluster, on whichever machines it has. The stream of batches is the same.

    Each actor has the dataset: made there by a class or ``functools.partial``, or taken out of Ray's object store,
    where it is put once. A batch is made by the actor, travels through the object store and is copied into memory of
    yours. Stoker, in the same version, must be installed on all nodes.

    Args:
        n: The number of actors.
        address: "auto": the cluster that this process is connected to, that runs on this machine, or that RAY_ADDRESS
            names. "local": a cluster that is started on this machine, and ended with the last loader. Or the address
            of a cluster, as "host:6379" or "ray://host:10001".
        num_cpus: The number of CPUs that each actor takes from the cluster.
        resources: Other resources that each actor takes, as in {"fast_disk": 1}.
        placement: "spread": over as many nodes as possible. "pack": on as few as possible; with ``autoscale``, as Ray
            places them by itself. Or a placement group of Ray's.
        runtime_env: Ray's description of what actors need: packages, environment variables, a folder with modules.
        local: The number of worker processes on this machine that work beside the actors.
        autoscale: (least, most): actors are added while all are busy, and let go while they idle.
        start_timeout: The number of seconds within which the actors must be up.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument has a wrong value. The loader raises ``StartError`` if the cluster cannot be reached,
            or is too small.
        NotImplementedError: The system is Windows.

    Example:
        >>> import stoker
        >>> stoker.Ray(8, address="ray://head:10001", num_cpus=2)
        Ray(n=8, address='ray://head:10001', num_cpus=2)
    """

    n: int
    address: str = "auto"
    num_cpus: float = 1
    resources: Mapping[str, float] | None = field(default=None, hash=False)
    placement: Literal["spread", "pack"] | Any = field(default="spread", hash=False)
    runtime_env: Mapping[str, Any] | None = field(default=None, hash=False)
    local: int = 0
    autoscale: tuple[int, int] | None = None
    start_timeout: float = 60.0

    def __post_init__(self) -> None:
        check_processes(self)
        checked = {
            "n": checked_count("n", self.n, "the number of actors, 1 or more", of="Ray"),
            "local": checked_count("local", self.local, "a number of processes, 0 or more", of="Ray", least=0),
            "address": _checked_address(self.address),
            "num_cpus": _checked_amount("num_cpus", self.num_cpus, "a number of CPUs, 0 or more"),
            "resources": _checked_resources(self.resources),
            "runtime_env": _checked_dict("runtime_env", self.runtime_env),
            "placement": _checked_placement(self.placement),
            "autoscale": _checked_range(self.autoscale, self.n),
            "start_timeout": _checked_amount("start_timeout", self.start_timeout, "a number of seconds"),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        defaults = {name: value.default for name, value in self.__dataclass_fields__.items() if name != "n"}
        told = [f"{name}={getattr(self, name)!r}" for name in defaults if getattr(self, name) != defaults[name]]
        return redacted_text(f"Ray({', '.join([f'n={self.n}', *told])})")  # runtime_env may have passwords

    @property
    def traits(self) -> Traits:
        return Traits(
            is_here=False,
            is_announced=True,
            is_elastic=self.autoscale is not None,
            imports_modules=True,
            run_seconds=_RUN_S,
            run_bytes=_RUN_BYTES,
        )

    @property
    def count(self) -> int:
        """All workers that there may be, here and there."""
        return self.local + (self.n if self.autoscale is None else self.autoscale[1])

    def prepare(self, job: Job) -> Site:
        """Pickles the job now, so that what can't travel is said before any actor starts."""
        with shadows_explained():
            from stoker.workers.processes import prepare as prepare_processes
            from stoker.workers.ray import prepare
            from stoker.workers.ray.placing import Placing

            least, most = self.autoscale or (self.n, self.n)
            resources = dict(self.resources or {})
            amounts = self.n, least, most, self.num_cpus, resources
            placing = Placing(*amounts, self.placement, self.runtime_env, self.start_timeout)
            processes = prepare_processes("nursery", job, ()) if self.local else None
            return prepare(placing, self.address, job, processes, self.local)


def _checked_address(address: Any) -> str:
    if not isinstance(address, str) or not address:
        raise TypeError(f'Ray(address={address!r}): pass "auto", "local", "host:port" or "ray://host:port"')
    if address not in ("auto", "local") and ":" not in address:
        raise ValueError(f'Ray(address={address!r}): pass "auto", "local", "host:port" or "ray://host:port"')
    return address


def _checked_amount(name: str, value: Any, remedy: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"Ray({name}={value!r}): pass {remedy}")
    if not 0 <= value < math.inf:
        raise ValueError(f"Ray({name}={value!r}): pass {remedy}")
    return value


def _checked_dict(name: str, value: Any) -> dict[str, Any] | None:
    """Our own copy, so that it stays as it is."""
    if value is None:
        return None
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise TypeError(f"Ray({name}={value!r}): pass a dict with names as its keys")
    return dict(value)


def _checked_resources(resources: Any) -> dict[str, float] | None:
    checked = _checked_dict("resources", resources)
    for name, amount in (checked or {}).items():
        if name in ("CPU", "GPU", "memory"):
            raise ValueError(f"Ray(resources={{{name!r}: ...}}): Ray has these apart. Pass num_cpus for CPUs")
        _checked_amount(f"resources[{name!r}]", amount, "a number, 0 or more")
    return checked


def _checked_placement(placement: Any) -> Any:
    if isinstance(placement, str):
        if placement not in _PLACEMENTS:
            raise ValueError(f'Ray(placement={placement!r}): pass "spread", "pack" or a placement group of Ray\'s')
    elif not hasattr(placement, "bundle_specs"):
        raise TypeError(f'Ray(placement={placement!r}): pass "spread", "pack" or a placement group of Ray\'s')
    return placement


def _checked_range(autoscale: Any, n: int) -> tuple[int, int] | None:
    if autoscale is None:
        return None
    if not isinstance(autoscale, tuple | list) or len(autoscale) != 2:
        raise TypeError(f"Ray(autoscale={autoscale!r}): pass (least, most), as in (2, 16)")
    least, most = (checked_count("autoscale", one, "two numbers of actors, 1 or more", of="Ray") for one in autoscale)
    if not least <= n <= most:
        raise ValueError(f"Ray({n}, autoscale=({least}, {most})): pass least, n and most with least <= n <= most")
    return least, most
