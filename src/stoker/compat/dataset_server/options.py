"""What a dataset_server ``DataLoader`` is told: its arguments, checked, and what they are for ``stoker.Loader``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import stoker
from stoker.compat.arguments import check_callable, check_flag, checked_count
from stoker.compat.dataset_server.batch import pinned, unchanged

_COUNTS = {"batch_size": 1, "nb_worker": 1, "max_minibatch_length": 1, "max_queue_size": 1, "nearby_shuffle": 0}
_OPTIONAL = ("max_minibatch_length",)
_FLAGS = ("shuffle", "pin_memory", "use_threading")


@dataclass(frozen=True, kw_only=True)
class Options:
    """The arguments of a ``DataLoader``, but for the two settings."""

    dataset_class: Callable[..., Any]
    dataset_params: Mapping[str, Any]
    batch_size: int
    nb_worker: int
    max_minibatch_length: int | None
    max_queue_size: int
    prefetch_time: float | None
    shuffle: bool
    device: Any
    pin_memory: bool
    gpu_indices: Sequence[int] | None
    nearby_shuffle: int
    use_threading: bool
    collate_fn: Callable[[list[Any]], Any] | None

    def __post_init__(self) -> None:
        check_callable("dataset_class", self.dataset_class)
        if self.collate_fn is not None:
            check_callable("collate_fn", self.collate_fn)
        params = self.dataset_params
        if not isinstance(params, Mapping) or not all(isinstance(key, str) for key in params):
            raise TypeError(f"dataset_params={params!r}: pass a dict of dataset_class's keyword arguments")
        for name, least in _COUNTS.items():
            if getattr(self, name) is not None or name not in _OPTIONAL:
                object.__setattr__(self, name, checked_count(name, getattr(self, name), least))
        for name in _FLAGS:
            check_flag(name, getattr(self, name))
        _check_seconds(self.prefetch_time)
        _check_gpus(self.gpu_indices, self.nb_worker)
        if self.device is not None or self.pin_memory:
            _check_torch(self.device)

    @property
    def order(self) -> bool | int:
        """``shuffle`` of ``stoker.Loader``."""
        return self.shuffle and (self.nearby_shuffle or True)

    @property
    def workers(self) -> stoker.Processes:
        if self.gpu_indices is None:
            return stoker.Processes(self.nb_worker)
        environments = [{"CUDA_VISIBLE_DEVICES": str(index)} for index in self.gpu_indices]
        return stoker.Processes(self.nb_worker, start="spawn", environments=environments)

    @property
    def can_pin(self) -> bool:
        """Whether batches are to be pinned, and there is a device that could read them."""
        if not self.pin_memory:
            return False
        import torch

        return bool(torch.cuda.is_available())

    @property
    def route(self) -> dict[str, Any]:
        """``to``, ``device`` and ``to_device`` of ``stoker.Loader``.

        Whatever ``to_device`` does, it does in a thread that talks to the workers, ahead of the consumer: so with one
        that does nothing, there is nothing left but that thread. On the way to a device there is one anyway.
        """
        if self.device is not None and not _is_cpu(self.device):
            return {"to": "torch", "device": self.device}  # on CUDA, by way of pinned memory
        to_device = pinned if self.can_pin else unchanged if self.use_threading else None
        return {"to": "torch" if self.device is not None or self.pin_memory else None, "to_device": to_device}


def _check_seconds(seconds: Any) -> None:
    if seconds is None:
        return
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise TypeError(f"prefetch_time={seconds!r}: pass a number of seconds, or None")
    if not 0 <= seconds < math.inf:
        raise ValueError(f"prefetch_time={seconds!r}: pass a number of seconds of 0 or more, or None")


def _check_gpus(indices: Any, workers: int) -> None:
    if indices is None:
        return
    if isinstance(indices, str | bytes) or not isinstance(indices, Sequence):
        raise TypeError(f"gpu_indices={indices!r}: pass a list with the number of a GPU for each worker")
    for index in indices:
        checked_count("gpu_indices: index", index, 0)
    if len(indices) != workers:
        raise ValueError(
            f"gpu_indices={indices!r} has {len(indices)} and nb_worker={workers}: pass one for each worker; "
            f"several may have the same"
        )


def _check_torch(device: Any) -> None:
    if find_spec("torch") is None:
        raise ImportError("device and pin_memory need torch, which is not installed: pip install stoker[torch]")
    if device is None:
        return
    import torch

    try:
        torch.empty(0, device=device)
    except Exception as error:  # AssertionError, RuntimeError, TypeError: whatever is wrong with it
        raise ValueError(
            f"device={device!r}: torch says {type(error).__name__}: {error}. Pass a device that is there, as in 'cpu' "
            f"or 'cuda:0', or leave it out"
        ) from error


def _is_cpu(device: Any) -> bool:
    import torch

    return bool(torch.device(device).type == "cpu")
