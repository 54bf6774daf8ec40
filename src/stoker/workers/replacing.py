"""Replacing: a sample that fails gives its place in the batch to another one.

A place goes through a chain: the sample that the plan has there, then its replacements, until one works. Which ones
these are follows from (seed, epoch, index), so the batch is the same whoever makes it. How many of a chain have killed
their worker is known to the engine alone: it says so by ``~place``, once for each of them, among the places of a
request that are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

from stoker.errors import WorkerDied, add_note
from stoker.plan import Batch, Plan, SentBatches, replacements
from stoker.sources import Fetched, Indexed, SampleError
from stoker.sources.indexed import IsInterrupt

FetchEach = Callable[[Sequence[int]], Sequence[Any]]  # for each index its sample, or a SampleError


class Replacing:
    """Makes the samples of one batch.

    Args:
        dataset: Says among which indices a replacement is to be found.
        plan: Seeds the choice.
        batch: That is made.
        is_interrupt: Whether an exception is none of the user's code.
    """

    def __init__(self, dataset: Indexed, plan: Plan | SentBatches, batch: Batch, is_interrupt: IsInterrupt) -> None:
        self._dataset, self._is_interrupt = dataset, is_interrupt
        self._seed, self._epoch = plan.seed, batch.epoch
        self._indices = plan.indices(batch)

    def fetch(self, left_out: Sequence[int], each: FetchEach, make: Callable[[int], Any]) -> Fetched:
        """All places but those that are left out; of those, ``~place`` are made from a later one of their chain on.

        Args:
            left_out: See above.
            each: Makes the samples that the plan has, as far as they have not killed anyone.
            make: Makes one of those that take their place.

        Raises:
            BaseException: The last error of a chain of which none works.
        """
        killers = Counter(~place for place in left_out if place < 0)
        places = [place for place in range(len(self._indices)) if place not in left_out]
        alive = [place for place in places if not killers[place]]
        made = each([self._indices[place] for place in alive]) if alive else ()
        if not left_out and not Fetched.of(made, self._indices).skipped:
            return Fetched(made, self._indices, [])
        found = dict(zip(alive, made, strict=True))
        samples, indices, failed = [], [], []
        for place in places:
            sample, index = found.get(place), self._indices[place]
            if killers[place] or isinstance(sample, SampleError):
                failed.extend([sample] if isinstance(sample, SampleError) else [])
                sample, index = self._replaced(index, killers[place] or 1, make, failed)
            samples.append(sample)
            indices.append(index)
        return Fetched(samples, indices, failed)

    def _replaced(
        self, index: int, begin: int, make: Callable[[int], Any], failed: list[SampleError]
    ) -> tuple[Any, int]:
        """The first of the chain from ``begin`` on that works; what fails on the way is noted in ``failed``."""
        last = failed[-1].error if failed and failed[-1].sample == index else None
        for candidate in islice(self._chain(index), begin, None):
            try:
                return make(candidate), candidate
            except BaseException as error:
                if self._is_interrupt(error):
                    raise
                failed.append(SampleError(candidate, error))
                last = error
        if last is None:
            raise WorkerDied(f"sample {index} killed its worker, and so did all that could replace it")
        add_note(last, f"stoker: sample {index} failed, and so did all that were tried in its place; this is the last")
        raise last

    def _chain(self, index: int) -> Iterator[int]:
        return chain([index], replacements(self._seed, self._epoch, index, self._dataset.peers(index)))
