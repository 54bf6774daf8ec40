"""A state that was saved at any step leads to just what was not delivered yet."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

from stoker.counts import checked_count
from stoker.testing.makers import MakeLoader, Makers
from stoker.testing.streams import Due, kept

_OF_THE_NEXT = 2  # batches of the epoch after the resumed one that are looked at


def assert_resumable(
    make_loader: MakeLoader,
    *,
    epochs: int = 2,
    resume_with: MakeLoader | None = None,
    in_order: bool = True,
    steps: int | None = None,
) -> None:
    """Asserts that the stream goes on unchanged from a state saved at any step, through JSON, in a new loader.

    The state is saved before the first batch, after every batch, and after the end of every epoch. Each is loaded by a
    new loader, whose rest of the epoch and beginning of the next are compared with an undisturbed run. Half way, the
    state is saved once more and loaded by another.

    Args:
        make_loader: Makes a new loader at each call.
        epochs: In how many epochs to save. All their batches are held in memory: take a small part of your dataset.
        resume_with: Makes the loaders that go on, perhaps with other workers; None: ``make_loader`` does.
        in_order: False: the rest of an epoch is compared as a multiset, for loaders with ``in_order=False``.
        steps: At most so many states are tried, evenly spaced, the first and the last among them; None: all.

    Raises:
        AssertionError: With the step where the state was saved, and what came that should not have.

    Example:
        >>> import numpy as np, stoker
        >>> from stoker.testing import assert_resumable
        >>> def make(workers=0):
        ...     return stoker.Loader(np.arange(20), batch_size=8, shuffle=True, workers=workers)
        >>> assert_resumable(make)
        >>> assert_resumable(make, resume_with=lambda: make(stoker.Threads(2)))
    """
    trial = _Trial(make_loader, resume_with, checked_count("epochs", epochs, "a number of epochs, 1 or more"), in_order)
    saved = list(trial.saved())
    if steps is not None:
        saved = _evenly(saved, checked_count("steps", steps, "a number of steps, 1 or more"))
    for one in saved:
        trial.go_on(one)


@dataclass(frozen=True)
class _Saved:
    """A state, as it comes back from a file, and what was due when it was saved."""

    state: Any
    due: Due
    when: str


class _Trial:
    def __init__(self, make: MakeLoader, resume_with: MakeLoader | None, epochs: int, in_order: bool) -> None:
        self._makers = Makers("state_dict", "load_state_dict")
        self._make = make
        self._resume_with = resume_with
        self._epochs = epochs
        self._in_order = in_order
        with self._makers.loader(make) as loader:
            self._stream = [[kept(batch) for batch in loader] for _ in range(epochs + 2)]
        if not all(self._stream):
            raise ValueError("make_loader() gives a loader whose epochs are empty: there is no step to resume at")

    def saved(self) -> Iterator[_Saved]:
        """The state at every step of one run. That it is saved must not change that run."""
        with self._makers.loader(self._make) as loader:
            yield self._save(loader, self._due(0), "before the first batch")
            for epoch in range(self._epochs):
                due = self._due(epoch)
                for step, batch in enumerate(loader):
                    due.take(batch, "a run whose state is saved at each step, beside one where it is not")
                    yield self._save(loader, due, f"after batch {step} of epoch {epoch}")
                due.finish("a run whose state is saved at each step")
                yield self._save(loader, self._due(epoch + 1), f"after the end of epoch {epoch}")

    def go_on(self, saved: _Saved) -> None:
        """Resumes, twice in a row."""
        who = f"resumed from the state {saved.when}"
        again = self._read_on(saved, who, save_again=True)
        assert again is not None
        self._read_on(again, f"{who}, and {again.when} a second time", save_again=False)

    def _read_on(self, saved: _Saved, who: str, *, save_again: bool) -> _Saved | None:
        """The rest of the epoch and the beginning of the next one; half way, the state is saved again."""
        again = None
        with self._resumed(saved) as loader:
            due = copy.copy(self._rest(saved, loader))
            save_after = len(due) // 2 if save_again else None
            if save_after == 0:
                again = self._save(loader, due, "after 0 more batches")
            for step, batch in enumerate(loader, 1):
                due.take(batch, who)
                if step == save_after:
                    again = self._save(loader, due, f"after {step} more batches")
            due.finish(who)
            following = self._due(due.epoch + 1)
            for batch in islice(loader, _OF_THE_NEXT):
                following.take(batch, who)
        return again

    @contextmanager
    def _resumed(self, saved: _Saved) -> Iterator[Any]:
        given = self._resume_with
        made = self._makers.loader(self._make) if given is None else self._makers.loader(given, "resume_with")
        with made as loader:
            try:
                loader.load_state_dict(saved.state)
            except Exception as error:
                error.add_note(f"stoker.testing: while it loaded the state {saved.when}")
                raise
            yield loader

    def _rest(self, saved: _Saved, loader: Any) -> Due:
        """At the very end of an epoch, a state leads to the next one, unless other shards have a batch left of it."""
        others_have = _is_of_uneven_shards(saved.state) and loader.epoch == saved.due.epoch
        return saved.due if len(saved.due) or others_have else self._due(saved.due.epoch + 1)

    def _due(self, epoch: int) -> Due:
        return Due(self._stream[epoch], epoch=epoch, in_order=self._in_order)

    def _save(self, loader: Any, due: Due, when: str) -> _Saved:
        state = loader.state_dict()
        try:
            return _Saved(json.loads(json.dumps(state)), copy.copy(due), when)
        except (TypeError, ValueError) as error:
            raise AssertionError(f"the state {when} cannot be written as JSON: {error}") from error


def _is_of_uneven_shards(state: Any) -> bool:
    plan = state.get("plan") if isinstance(state, dict) else None
    return isinstance(plan, dict) and plan.get("even_shards") is False


def _evenly(saved: list[_Saved], count: int) -> list[_Saved]:
    if count >= len(saved):
        return saved
    last = len(saved) - 1
    return [saved[round(k * last / max(count - 1, 1))] for k in range(count)]
