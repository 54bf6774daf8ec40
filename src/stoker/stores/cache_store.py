"""The cache as a worker has it open: which generation a batch belongs to, and when an old one goes."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from stoker.plan import Batch, Plan
from stoker.stores.cache import Cache
from stoker.stores.cache_file import CacheFile
from stoker.stores.cache_folder import ENDING, FORMAT, About, CacheFolder
from stoker.stores.fingerprint import described
from stoker.stores.record_codec import RecordDecoder, RecordEncoder
from stoker.stores.shared_samples import Collected, NoSharedSamples, collect


def folder_of(cache: Cache, dataset: Any) -> CacheFolder:
    """The cache's folder, for that dataset or factory."""
    text, secrets = described(dataset)
    return CacheFolder(str(cache.path), About(FORMAT, text, str(cache.version), cache.codec), secrets)


def open_cache(
    cache: Cache, folder: CacheFolder, ahead: int, plan: Plan, file: int, *, copies: bool, tell: Callable[[str], None]
) -> CacheStore:
    """Opens it in a worker. ``ahead``: batches that may be under way, or ready, and not yet taken."""
    decoder = RecordDecoder(cache.codec, copies=copies)
    return CacheStore(cache, folder, ahead, plan, decoder, lambda what: tell(f"the cache {folder.path}: {what}"))


class CacheStore:
    """The cache as one worker has it open. ``tell`` is called with what the user should know."""

    def __init__(
        self,
        cache: Cache,
        folder: CacheFolder,
        ahead: int,
        plan: Plan,
        decoder: RecordDecoder,
        tell: Callable[[str], None],
    ) -> None:
        self._cache, self._folder, self._ahead, self._plan = cache, folder, ahead, plan
        self._decoder, self._tell = decoder, tell
        self._encoder = RecordEncoder(cache.codec)
        self._open: tuple[int, CacheFile] | None = None  # the first epoch of a generation
        self._left: set[int] = set()  # older generations, to be removed when the consumer, too, has left them
        self._is_made = False

    def seed_of(self, epoch: int, index: int) -> int:
        return self._cache.seed(self._plan.seed, epoch, index)

    def keys(self, batch: Batch, indices: Sequence[int]) -> Sequence[int]:
        if self._left:
            self._remove_left(batch)
        return indices

    def fetch(self, epoch: int, keys: Sequence[int], make: Callable[[int], Any], tick: Callable[[], None]) -> Collected:
        generation = self._generation(epoch)
        if generation is not None:
            generation.begin()
        return collect(generation or NoSharedSamples(), keys, make, tick)

    def finish(self, epoch: int, keys: Sequence[int]) -> bool:
        return self._open is None or self._open[1].is_unharmed()

    def abandon(self) -> None:
        if self._open is not None:
            self._open[1].abandon()

    def close(self) -> None:
        if self._open is not None:
            self._open[1].close()
            self._open = None

    def _generation(self, epoch: int) -> CacheFile | None:
        """That epoch's generation, or None if there is no room for it."""
        first = self._cache.first_epoch(epoch)
        if self._open is not None and self._open[0] == first:
            return self._open[1]
        self._leave(first)
        name = self._cache.generation(self._plan.seed, epoch)
        try:
            if not self._is_made:
                self._folder.make()
                self._is_made = True
            with self._folder.held():
                if not self._folder.make_room(name):
                    return None
                file = os.path.join(self._folder.path, name + ENDING)
                made = CacheFile(
                    file,
                    self._plan.length,
                    self._encoder,
                    self._decoder,
                    lambda: self._room(name),
                    self._limit(name),
                    self._tell,
                )
        except OSError as error:
            self._tell(f"{error.strerror}. Samples are made by the dataset, as without a cache")
            return None
        self._open = first, made
        return made

    def _leave(self, first: int) -> None:
        if self._open is not None:
            left = self._open[0]
            self.close()
            if left < first:
                self._left.add(left)

    def _remove_left(self, batch: Batch) -> None:
        """Once so many batches were made of this generation that the consumer must have taken some, and so needs none
        of the older ones. Before that, a run that ends here could go on with the older one. The last one out succeeds.
        """
        first = self._cache.first_epoch(batch.epoch)
        if (batch.epoch - first) * self._plan.rounds + batch.position // self._plan.stride >= self._ahead:
            names = {left: self._cache.generation(self._plan.seed, left) for left in self._left}
            self._left = {left for left, name in names.items() if left >= first or not self._folder.remove(name)}

    @contextlib.contextmanager
    def _room(self, name: str) -> Iterator[float]:
        """How large this generation may get. Until the end no other one grows."""
        if self._cache.max_bytes is None:
            yield math.inf
            return
        with contextlib.ExitStack() as held:
            try:
                held.enter_context(self._folder.held())
                room = self._limit(name)
            except FileNotFoundError:  # somebody has removed the cache
                room = 0
            yield room

    def _limit(self, name: str) -> float:
        limit = self._cache.max_bytes
        return math.inf if limit is None else limit - self._folder.nbytes_beside(name)
