"""How an epoch begins: from the start, or from a state."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from torch.utils.data import _DatasetKind

from stoker.torch import draws
from stoker.torch.progress import Progress, Snapshot
from stoker.torch.sampling import Pass, is_stateful, may_draw, turn
from stoker.torch.states import OtherWorkers, SavedState


def begun(
    iterator: Any, loader: Any, saved: SavedState | None, begin: Callable[[], None], *, draws_seed: bool = True
) -> Progress:
    """Has torch begin an epoch, by ``begin``, and brings it to where the state was saved, if there is one.

    Torch asks the sampler for an iterator then, and draws the base seed, unless workers are there already
    (``draws_seed=False``): so random generators must be in their places.
    """
    if saved is not None:
        _check_workers(saved, loader)
    sampler, is_iterable = loader._index_sampler, loader._dataset_kind == _DatasetKind.Iterable
    generators = generators_of(loader)
    own = {} if saved is None else saved.own
    for one, epoch in zip(_with_epochs(loader), own.get("sampler_epochs", ()), strict=False):
        one.set_epoch(epoch)
    if saved is not None and saved.is_unbegun:
        turn(sampler, saved.snapshot.sampler)
    before = _first_draws(loader) if saved is None else own.get("draws")
    recorded, is_ahead = own.get("draws"), saved is not None and saved.is_unbegun
    if recorded is not None and is_ahead and draws.are_there(recorded):
        draws.set_all(generators, recorded["generators"])
        recorded = None
    with draws.drawn_again(recorded, generators):
        begin()
        if own.get("drew_no_seed"):  # the epoch had begun with workers that were there, so as if this had not been
            draws.set_all(generators, own["draws"]["generators"])
            draws.set_shared(own["draws"])
            iterator._sampler_iter = iter(sampler)
        iterator._sampler_iter = Pass(sampler, iterator._sampler_iter)
        if saved is not None and not is_ahead:
            _bring_to(iterator, saved, is_iterable=is_iterable)
        if recorded is not None and not is_iterable and not iterator._sampler_iter.has_state:
            iterator._sampler_iter.draw()
    if recorded is not None and is_ahead:
        draws.move_on()
    snapshot = Snapshot() if saved is None or saved.turns_epoch else saved.snapshot
    if iterator._sampler_iter.has_state and not snapshot.low:
        snapshot = dataclasses.replace(snapshot, sampler=iterator._sampler_iter.state_dict())
    tells_state = is_iterable or is_stateful(loader.dataset) or iterator._sampler_iter.has_state
    return Progress(
        int(loader.num_workers),
        loader._epoch,
        is_iterable,
        iterator._base_seed,
        iterator._shared_seed,
        iterator._IterableDataset_len_called,
        before,
        generators,
        (loader.snapshot_every_n_steps or 0) if tells_state and loader.num_workers else 1,
        snapshot,
        sampler_epochs=epochs_of(loader),
        drew_no_seed=not draws_seed or bool(own.get("drew_no_seed")),
    )


def _bring_to(iterator: Any, saved: SavedState, *, is_iterable: bool) -> None:
    iterator._base_seed = saved.own.get("base_seed", saved.main.get("_base_seed", iterator._base_seed))
    iterator._IterableDataset_len_called = saved.main["_IterableDataset_len_called"]
    if not is_iterable:
        iterator._sampler_iter.load_state_dict(saved.snapshot.sampler)


def _first_draws(loader: Any) -> dict[str, Any] | None:
    """The random generators as they are before an epoch; None where the sampler does not draw from them."""
    is_iterable = loader._dataset_kind == _DatasetKind.Iterable
    return draws.captured(generators_of(loader)) if may_draw(loader._index_sampler) and not is_iterable else None


def generators_of(loader: Any) -> draws.Generators:
    return draws.generators_of(loader, *samplers_of(loader))


def samplers_of(owner: Any) -> list[Any]:
    """The samplers of a loader, and those that these have in turn, as Accelerate's have."""
    found: list[Any] = []
    for name in ("sampler", "batch_sampler"):
        sampler = getattr(owner, name, None)
        if sampler is not None and sampler is not owner and not any(sampler is one for one in found):
            found += [sampler, *samplers_of(sampler)]
    return found


def epochs_of(loader: Any) -> list[int]:
    """Of the samplers that have one, such as torch's ``DistributedSampler``, by which they shuffle."""
    return [sampler.epoch for sampler in _with_epochs(loader)]


def _with_epochs(loader: Any) -> list[Any]:
    seen = {id(sampler): sampler for sampler in samplers_of(loader)}
    return [
        sampler
        for sampler in seen.values()
        if callable(getattr(sampler, "set_epoch", None)) and isinstance(getattr(sampler, "epoch", None), int)
    ]


def _check_workers(saved: SavedState, loader: Any) -> None:
    is_iterable = loader._dataset_kind == _DatasetKind.Iterable
    has_parts = (is_iterable and not saved.turns_epoch) or saved.tells_datasets
    if saved.num_workers == loader.num_workers or not has_parts:
        return
    why = (
        "each worker reads a part of an iterable dataset"
        if is_iterable
        else "each worker's dataset has a state of its own"
    )
    raise OtherWorkers(
        f"the state is of num_workers={saved.num_workers}, and this DataLoader has num_workers={loader.num_workers}: "
        f"{why}, so pass num_workers={saved.num_workers}"
    )
