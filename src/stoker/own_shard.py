"""A loader's own shard: found late, and checked when a loop begins."""

from __future__ import annotations

from typing import Any, Literal

from stoker.arguments import check_chunked_shard, check_packed_shard
from stoker.session import Session
from stoker.shards import check_still, shard_of, warn_if_all_read_all
from stoker.sources import is_chunks


class OwnShard:
    """What the user has passed as ``shard``, and the session that reads it.

    Args:
        given: (index, count), "auto" or None.
        session: Goes on as the shard that was found.
        dataset: As passed to the loader.
        packs_evenly: Samples are packed, and all shards shall have the same number of batches.
    """

    def __init__(
        self,
        given: tuple[int, int] | Literal["auto"] | None,
        session: Session,
        dataset: Any,
        *,
        packs_evenly: bool,
    ) -> None:
        self._given, self._session, self._dataset, self._packs_evenly = given, session, dataset, packs_evenly
        self._is_checked = False

    def find(self) -> None:
        """``"auto"`` is asked for anew until the workers have started: process groups come up late."""
        session = self._session
        if self._given == "auto" and session.is_fresh:
            found = shard_of("auto")
            if found != session.shard:
                if is_chunks(self._dataset):
                    check_chunked_shard(self._dataset, found)
                if self._packs_evenly:
                    check_packed_shard(found, even_shards=True)
                session.set_shard(found)

    def known_length(self) -> int | None:
        """Batches in an epoch of it, where that is known without starting or reading anything."""
        return None if self._given == "auto" and self._session.is_fresh else self._session.known_length()

    def check(self) -> None:
        """As a loop or the workers begin. Called by the loader's own methods, whose caller a warning points to."""
        self.find()
        self._session.showing.watch()
        if self._given == "auto":
            check_still(self._session.shard)
        if not self._is_checked:
            self._is_checked = True
            warn_if_all_read_all(self._given, stacklevel=3)
