"""Processors: how many may really be used, and who wants to use them."""

from __future__ import annotations

from collections.abc import Iterator

from stoker.doctor.finding import Finding, Level
from stoker.doctor.groups import cpu_quota, is_container
from stoker.doctor.host import Host

_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
_SLOW_CLOCKS = {"hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"}


def usable_cores(host: Host) -> float:
    """By affinity and quota."""
    quota = cpu_quota(host)
    return host.own_cores if quota is None else min(quota, host.own_cores)


def quota(host: Host) -> Iterator[Finding]:
    """The CPU quota of a container against the cores that programs see."""
    allowed, where = cpu_quota(host), "container" if is_container(host) else "control group"
    seen = f"{host.all_cores} cores in the machine, {host.own_cores} for this process"
    if allowed is None or allowed >= host.own_cores:
        yield Finding("CPU quota", Level.FINE, f"{seen}, and no quota below that")
        return
    workers = max(1, int(allowed))
    yield Finding(
        "CPU quota",
        Level.WARNING,
        f"The {where} may use {allowed:g} CPUs at a time, but programs see {host.own_cores} cores",
        "Libraries start a thread for each core that they see, and when all run the kernel stops the whole "
        f"{where} for a part of each period: batches come in fits and starts.",
        f"export OMP_NUM_THREADS={workers}   # and stoker.Loader(..., workers={workers})",
    )


def threads_of_libraries(host: Host) -> Iterator[Finding]:
    """Threads of BLAS and OpenMP in workers. Stoker's use one each, unless the environment says otherwise."""
    cores = usable_cores(host)
    workers = max(1, int(cores)) if host.workers is None else host.workers
    asked = {name: int(value) for name in _THREADS if (value := host.environment.get(name, "")).isdigit()}
    most = max(asked, key=lambda name: asked[name], default=None)
    if most is None or asked[most] <= 1 or asked[most] * workers <= cores:
        told = ", ".join(f"{name}={value}" for name, value in asked.items()) or "not set: workers use one each"
        yield Finding("BLAS and OpenMP threads", Level.FINE, told)
        return
    threads = asked[most]
    yield Finding(
        "BLAS and OpenMP threads",
        Level.WARNING,
        f"{most}={threads}: {workers} workers with {threads} threads each are {workers * threads}, on {cores:g} cores",
        "Threads that take turns on a core are slower than one, and they keep the training thread from running.",
        f"unset {most}   # workers then use one thread each",
    )


def clock_source(host: Host) -> Iterator[Finding]:
    """Whether asking for the time is quick: Stoker does so several times a batch, frameworks far more often."""
    source = host.read("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    if source in _SLOW_CLOCKS:
        yield Finding(
            "clock source",
            Level.WARNING,
            f"The kernel's clock is {source}",
            "Each look at the clock takes a microsecond or more instead of 30 ns, and programs that measure are slow.",
            "boot with tsc=reliable clocksource=tsc, if the machine's processors are in step",
        )
    elif source is not None:
        yield Finding("clock source", Level.FINE, source)
