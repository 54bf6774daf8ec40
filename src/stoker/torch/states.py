"""States, as they are read: ours and torchdata's, of either form."""

from __future__ import annotations

import dataclasses
import sys
from dataclasses import dataclass
from operator import index
from typing import Any

import stoker
from stoker.torch.draws import unpacked
from stoker.torch.progress import FINISHED, OWN, Snapshot
from stoker.torch.seals import opened, sealed


class OtherWorkers(stoker.StateError, AssertionError):
    """The state is of another number of workers, each of which had its own part. torchdata asserts that it is not."""


@dataclass(frozen=True)
class SavedState:
    """What a state says, whoever saved it.

    Attributes:
        snapshot: Where to begin.
        steps: How many batches to pass over then.
        finished: The epoch was over.
        num_workers: Of the loader that saved it.
        main: Its part about the sampler.
        own: What only our states have, if it is one.
        is_unbegun: It was saved before the epoch began: not even the sampler had been asked for anything.
        turns_epoch: What it says of datasets and samplers is from the end of the epoch before.
    """

    snapshot: Snapshot
    steps: int
    finished: bool
    num_workers: int
    main: dict[str, Any]
    own: dict[str, Any]
    is_unbegun: bool
    turns_epoch: bool = False

    @property
    def tells_datasets(self) -> bool:
        """Whether it has the state of any dataset."""
        return any(_tells(opened(state)) for state in self.snapshot.workers.values())

    def of_next_epoch(self, *, draws_seed: bool) -> SavedState:
        """What the end of an epoch says of the next one; of datasets only where they are in this process."""
        draws = self.own.get("next_draws")
        return dataclasses.replace(
            self,
            snapshot=Snapshot(
                sampler=self.own.get("next_sampler") or {},
                workers={} if self.num_workers else self.snapshot.workers,
            ),
            steps=0,
            finished=False,
            own={"draws": draws, "drew_no_seed": not draws_seed} if draws else {},
            is_unbegun=True,
            turns_epoch=True,
        )


def read_state(state: dict[str, Any]) -> SavedState:
    """Raises StateError if it is not one."""
    try:
        return _read(state)
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RuntimeError) as error:
        raise stoker.StateError(
            f"this is not the state of a DataLoader ({type(error).__name__}: {error}): pass what state_dict() of "
            f"stoker.torch.DataLoader, or of torchdata's StatefulDataLoader, has returned"
        ) from error


def _read(state: dict[str, Any]) -> SavedState:
    own = dict(state.get(OWN) or {})
    for name in ("draws", "next_draws"):
        if own.get(name) is not None:
            own[name] = unpacked(own[name])
    if "sampler_epochs" in own:
        own["sampler_epochs"] = list(own["sampler_epochs"])
    if "_snapshot" in state:
        found = state["_snapshot"]
        main, step, last = found["_main_snapshot"], found["_snapshot_step"], found["_last_yielded_worker_id"]
        count, steps = main["_num_workers"], state["_steps_since_snapshot"]
        workers = {k: sealed(found["_worker_snapshots"][f"worker_{k}"]) for k in range(count)}
    else:
        main, step, last, count, steps = state, state["_num_yielded"], 0, 0, 0
        fetcher = state["fetcher_state"]
        if fetcher is not None:
            fetcher = {**fetcher}
        workers = {0: sealed({"fetcher_state": fetcher, "dataset_state": state["dataset_state"]})}
    snapshot = Snapshot(
        _count(step),
        _count(main["_sampler_iter_yielded"]),
        frozenset(own.get("taken", ())),
        {name: main.get(name) for name in ("_index_sampler_state", "_sampler_iter_state", "_sampler_iter_yielded")},
        workers,
        {int(worker): int(made) for worker, made in own.get("made", {}).items()},
        frozenset(own.get("ended", ())),
        int(last),
    )
    main["_IterableDataset_len_called"]  # without it, it is none
    is_unbegun = bool(own) and own["base_seed"] is None
    return SavedState(snapshot, _count(steps), bool(state[FINISHED]), _count(count), main, own, is_unbegun)


def _count(value: Any) -> int:
    """How many there were, of batches or workers."""
    count = index(value)
    if not 0 <= count <= sys.maxsize:
        raise ValueError(f"{count} of something")
    return count


def _tells(state: dict[str, Any]) -> bool:
    fetcher = state.get("fetcher_state") or {}
    return state.get("dataset_state") is not None or fetcher.get("dataset_iter_state") is not None
