"""Which shard this process is, found out from its surroundings.

``shard="auto"`` asks whoever runs: torch.distributed, then JAX; then the environment that torchrun and the like make.
Nothing is imported for it, and nothing is started: asking JAX for ``process_count()`` would start its backends, after
which ``jax.distributed.initialize()`` is refused.
"""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any

_REMEDY = "pass shard=(index, count) with 0 <= index < count, or shard='auto'"

# What launchers call a process's number, and how many there are. They are not believed, as some count machines and
# not processes; but whoever asks for "auto" and finds nothing else is told of them.
_LAUNCHERS = (
    ("RANK", "WORLD_SIZE"),  # some set only the second, and leave the first to the framework
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),  # srun; in a batch script, one process has the first without the second
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
)


def shard_of(shard: Any) -> tuple[int, int]:
    """What ``Loader(shard=...)`` may be given, as (index, count). ``"auto"``: as it is right now.

    Raises:
        ValueError: It is another string; or the environment's variables make no sense.
    """
    if shard is None:
        return 0, 1
    if not isinstance(shard, str):
        return shard  # type: ignore[no-any-return]  # the plan checks it
    if shard != "auto":
        raise ValueError(f"shard={shard!r}: {_REMEDY}")
    return _of_group() or _of_environment() or (0, 1)


def check_still(shard: tuple[int, int]) -> None:
    """``"auto"`` was that when the workers started: a loader cannot change its shard any more.

    A group that has ended since is no matter: whoever reads on has the shard that it had.

    Raises:
        RuntimeError: By now this process is another one of several.
    """
    now = shard_of("auto")
    if now != shard and now[1] > 1:
        raise RuntimeError(
            f"shard='auto' was {shard} when the workers of this loader started, and by now this is process {now[0]} "
            f"of {now[1]}: first start torch.distributed or JAX, then begin a loop, warm_up() or, where only workers "
            f"can make the dataset, len(); or pass shard=(index, count). If the number of processes has changed, make "
            f"a new loader, and load the state of this one"
        )


def warn_if_all_read_all(given: Any, stacklevel: int) -> None:
    """Says so if this is one of several processes, each of which reads all samples. ``given``: the user's ``shard``."""
    message = None
    if given is None:
        message = _unsharded(*(_of_group() or (0, 1)))
    elif given == "auto" and shard_of("auto") == (0, 1):
        message = _undivided()
    if message is not None:
        warnings.warn(message, RuntimeWarning, stacklevel=stacklevel + 1)


def _unsharded(index: int, count: int) -> str | None:
    if count == 1:
        return None
    return (
        f"this is process {index} of {count} that run together, and its loader has no shard: each of them reads all "
        f"samples. Pass shard='auto' to divide the samples, or shard=(0, 1) if each process is to have them all, as "
        f"for an evaluation on every one"
    )


def _undivided() -> str | None:
    if _of_group() is not None:
        return None  # of one process
    for rank, count in _LAUNCHERS:
        said = os.environ.get(count, "")
        if said.isdecimal() and int(said) > 1:
            return (
                f"shard='auto' found neither torch.distributed nor JAX running in several processes, nor RANK and "
                f"WORLD_SIZE, so this process reads all samples; but {count}={said}, {rank}={os.environ.get(rank)}. "
                f"Begin after init_process_group(), or pass shard=(index, count); shard=(0, 1) if each process is to "
                f"have all samples"
            )
    return None


def _of_group() -> tuple[int, int] | None:
    """Of the processes that run together, if they have found each other."""
    return _of_torch() or _of_jax()


def _of_torch() -> tuple[int, int] | None:
    distributed: Any = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return distributed.get_rank(), distributed.get_world_size()


def _of_jax() -> tuple[int, int] | None:
    """None where it runs in a single process, or has not begun."""
    state: Any = getattr(sys.modules.get("jax._src.distributed"), "global_state", None)
    if getattr(state, "client", None) is not None:
        index, count = state.process_id, state.num_processes
    elif _jax_has_backends():
        jax: Any = sys.modules["jax"]
        index, count = jax.process_index(), jax.process_count()
    else:
        return None
    return (index, count) if count > 1 else None


def _jax_has_backends() -> bool:
    """Then asking it starts nothing. On a pod of TPUs, its processes may know of each other without being told."""
    are_there: Any = getattr(sys.modules.get("jax._src.xla_bridge"), "backends_are_initialized", None)
    return "jax" in sys.modules and are_there is not None and bool(are_there())


def _of_environment() -> tuple[int, int] | None:
    rank, world_size = os.environ.get("RANK"), os.environ.get("WORLD_SIZE")
    if rank is None or world_size is None:
        return None
    found = f"shard='auto' found RANK={rank!r} and WORLD_SIZE={world_size!r} in the environment"
    try:
        index, count = int(rank), int(world_size)
    except ValueError:
        raise ValueError(f"{found}, which are not numbers: {_REMEDY}") from None
    if not 0 <= index < count:
        raise ValueError(f"{found}: there is no such rank. Set 0 <= RANK < WORLD_SIZE, or {_REMEDY}")
    return index, count
