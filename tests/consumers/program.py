"""A script: several consumers on one machine, started as people start them. ``test_consumers.py`` reads what they got.

    program.py spawn|fork|killed-spawn|killed-fork|torch|late-torch|jax FOLDER
    torchrun ... program.py torchrun FOLDER

Each consumer reads two epochs of its shard and writes the indices of each batch to FOLDER/{its index}.json.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import select
import signal
import socket
import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil

import stoker

LENGTH, BATCH, EPOCHS = 115, 5, 2  # in rounds of 3 x 5, and of 2 x 5, something is left for the last one
CONSUMERS = {
    "spawn": 3,
    "fork": 3,
    "killed-spawn": 3,
    "killed-fork": 3,
    "torch": 2,
    "late-torch": 2,
    "torchrun": 2,
    "jax": 2,
}
GONE_S = 5.0  # for the workers of a consumer that was killed, on a busy machine


class Numbers:
    """Sample i is i. A class of the script itself, which the consumer may have under another module's name."""

    def __len__(self) -> int:
        return LENGTH

    def __getitem__(self, index: int) -> np.int64:
        return np.int64(index)


def make(shard: Any, workers: Any = 2) -> stoker.Loader[Any]:
    return stoker.Loader(Numbers(), BATCH, shuffle=True, shard=shard, workers=workers)


def consume(index: int, loader: Any, folder: Path, between: Callable[[int], None] = lambda step: None) -> None:
    """``between`` is called after each batch with the number of batches so far."""
    epochs: list[list[Any]] = []
    with loader:
        for _ in range(EPOCHS):
            epochs.append([])
            for batch in loader:
                epochs[-1].append(batch.tolist())
                between(sum(map(len, epochs)))
    (folder / f"{index}.json").write_text(json.dumps(epochs))


def spawned(folder: Path) -> None:
    """Each is handed an unstarted loader, with its shard."""
    join("spawn", consume, [(k, make((k, 3)), folder) for k in range(3)])


def forked(folder: Path) -> None:
    """Each finds its shard in the environment; meanwhile their parent reads with a loader of its own."""
    with make(None) as own:
        next(iter(own))
        join("fork", consume_by_rank, [(k, folder) for k in range(3)])
        assert len(list(own)) == len(own)


def consume_by_rank(index: int, folder: Path) -> None:
    os.environ |= {"RANK": str(index), "WORLD_SIZE": "3"}
    consume(index, make("auto"), folder)


def join(method: str, target: Callable[..., None], consumers: list[tuple[Any, ...]]) -> None:
    context = multiprocessing.get_context(method)
    processes = [context.Process(target=target, args=arguments) for arguments in consumers]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * len(processes)


def killed(method: str, folder: Path) -> None:
    """One of three is killed in the middle: when it and its workers are gone, the others go on."""
    context = multiprocessing.get_context(method)
    # Bare semaphores: whoever is killed in a Barrier or an Event may take its lock along.
    arrived, go_on = context.Semaphore(0), context.Semaphore(0)
    processes = [context.Process(target=consume_with_a_pause, args=(k, folder, arrived, go_on)) for k in range(3)]
    for process in processes:
        process.start()
    for _ in processes:
        arrived.acquire()
    victim = processes[1]
    workers = psutil.Process(victim.pid).children(recursive=True)
    assert len(workers) >= 2
    watched = [os.pidfd_open(worker.pid) for worker in workers]
    victim.kill()
    victim.join()
    for pidfd in watched:
        assert select.select([pidfd], [], [], GONE_S)[0], "a worker has outlived its consumer"
        os.close(pidfd)
    go_on.release()
    go_on.release()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, -signal.SIGKILL, 0]


def consume_with_a_pause(index: int, folder: Path, arrived: Any, go_on: Any) -> None:
    def between(step: int) -> None:
        if step == 3:
            arrived.release()
            go_on.acquire()

    consume(index, make((index, 3)), folder, between)


def torch_spawn(folder: Path) -> None:
    from torch import multiprocessing as torch_multiprocessing

    torch_multiprocessing.spawn(consume_in_step, args=(folder, f"file://{folder}/meeting", 2), nprocs=2)


def late_torch_spawn(folder: Path) -> None:
    """The loader is made, and asked for its length, before there is any group, as it is under Lightning."""
    from torch import multiprocessing as torch_multiprocessing

    loader = make("auto")
    assert len(loader) == LENGTH // BATCH
    torch_multiprocessing.spawn(consume_in_step, args=(folder, f"file://{folder}/meeting", 2, loader), nprocs=2)


def consume_in_step(index: int, folder: Path, meeting: str = "env://", count: int = -1, loader: Any = None) -> None:
    """Every step is one together: were the numbers of batches not equal, one would wait in vain."""
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo", init_method=meeting, rank=index, world_size=count)

    def between(step: int) -> None:
        steps = torch.tensor([step])
        dist.all_reduce(steps)
        assert steps.item() == step * dist.get_world_size()

    consume(dist.get_rank(), make("auto") if loader is None else loader, folder, between)
    with warnings.catch_warnings(record=True) as caught, make(None, workers=0) as unsharded:
        warnings.simplefilter("always")
        next(iter(unsharded))
    assert [f"process {dist.get_rank()} of 2" in str(warning.message) for warning in caught] == [True]
    dist.destroy_process_group()


def jax_processes(folder: Path) -> None:
    with socket.create_server(("localhost", 0)) as free:
        address = f"localhost:{free.getsockname()[1]}"
    join("spawn", consume_in_jax, [(k, folder, address) for k in range(2)])


def consume_in_jax(index: int, folder: Path, address: str) -> None:
    import jax

    loader = make("auto")
    assert len(loader) == LENGTH // BATCH  # which starts nothing in JAX, or the next line would be refused
    jax.distributed.initialize(address, 2, index)
    consume(index, loader, folder)
    jax.distributed.shutdown()


PROGRAMS = {
    "spawn": spawned,
    "fork": forked,
    "killed-spawn": partial(killed, "spawn"),
    "killed-fork": partial(killed, "fork"),
    "torch": torch_spawn,
    "late-torch": late_torch_spawn,
    "torchrun": partial(consume_in_step, -1),
    "jax": jax_processes,
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](Path(sys.argv[2]))
