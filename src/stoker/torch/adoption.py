"""Puts Stoker's workers under a loader that a framework has built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch.utils.data import _DatasetKind

from stoker.torch.loader import DataLoader

_TAKEN_OVER = (  # what a loader does with samples, as opposed to which samples it takes
    "num_workers",
    "collate_fn",
    "pin_memory",
    "timeout",
    "worker_init_fn",
    "multiprocessing_context",
    "generator",
    "prefetch_factor",
    "persistent_workers",
    "pin_memory_device",
    "in_order",
    "snapshot_every_n_steps",
    "seed",
    "recover",
    "retry",
    "workers",
    "progress",
    "watch",
)


def adopt(prepared: Any, **options: Any) -> Any:
    """Has a loader that a framework built load with Stoker.

    Accelerate's ``prepare`` and ``skip_first_batches`` build torch's own ``DataLoader`` from the one they are given,
    and keep it inside of theirs: pass their result to this function. The dataset, the samplers and all arguments stay.

    Args:
        prepared: What ``accelerator.prepare`` or ``accelerate.skip_first_batches`` returned; or a ``DataLoader`` of
            torch's, or torchdata's ``StatefulDataLoader``.
        options: ``seed``, ``recover``, ``retry``, ``workers``, ``snapshot_every_n_steps``, ``progress``, ``watch``: as
            in ``stoker.torch.DataLoader``. Accelerate drops those of the loader that it is given.

    Returns:
        A loader of Accelerate's: the same object, which now iterates a ``stoker.torch.DataLoader``. It has
        ``state_dict()`` and ``load_state_dict()``. Of another: a new ``stoker.torch.DataLoader``. One that loads with
        Stoker already, with these options, is returned as it is.

    Raises:
        TypeError: It is no loader that this function knows, or there is no such option.

    Example:
        >>> import stoker.torch, torch
        >>> from torch.utils.data import DataLoader
        >>> loader = stoker.torch.adopt(DataLoader(torch.arange(5), batch_size=2), seed=0)
        >>> type(loader), [batch.tolist() for batch in loader]
        (<class 'stoker.torch.loader.DataLoader'>, [[0, 1], [2, 3], [4]])
    """
    # Accelerate's loaders say that their class is the one of what they keep, so isinstance does not tell them.
    inner = getattr(prepared, "base_dataloader", None)
    if inner is None:
        return _of_ours(prepared, options)
    prepared.base_dataloader = _of_ours(inner, options)
    if prepared.base_dataloader is not inner:
        prepared.dl_state_dict = prepared.base_dataloader.state_dict()  # what its state_dict() returns
    return prepared


def _of_ours(loader: Any, options: Mapping[str, Any]) -> DataLoader[Any]:
    if isinstance(loader, DataLoader) and all(vars(loader).get(name, ...) == options[name] for name in options):
        return loader
    if not hasattr(loader, "_dataset_kind"):  # as torch's and torchdata's have it
        raise TypeError(
            f"a {type(loader).__module__}.{type(loader).__name__} cannot be adopted: pass what accelerator.prepare or "
            f"accelerate.skip_first_batches has returned, or a torch.utils.data.DataLoader"
        )
    if hasattr(loader._iterator, "_shutdown_workers"):  # torchdata's starts workers when Accelerate asks for its state
        loader._iterator._shutdown_workers()
    taken_over = {name: getattr(loader, name) for name in _TAKEN_OVER if hasattr(loader, name)}
    return DataLoader(loader.dataset, **_batching(loader), **{**taken_over, **options})


def _batching(loader: Any) -> dict[str, Any]:
    """The arguments that say which samples a batch has."""
    if loader._dataset_kind == _DatasetKind.Iterable:
        return {"batch_size": loader.batch_size, "drop_last": loader.drop_last}
    if loader.batch_size is not None:
        return {"batch_size": loader.batch_size, "drop_last": loader.drop_last, "sampler": loader.sampler}
    if loader.batch_sampler is not None:
        return {"batch_sampler": loader.batch_sampler}
    return {"batch_size": None, "sampler": loader.sampler}
