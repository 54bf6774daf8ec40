"""A loader's own shard: found late, and checked when a loop begins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from stoker.arguments import check_chunked_shard, check_packed_shard
from stoker.session import Session
from stoker.shards import check_still, shard_of, warn_if_all_read_all

if TYPE_CHECKING:
    from stoker.sources.chunks import Chunks


class OwnShard:
    """What the user has passed as ``shard``, and the session that reads it.

    Args:
        given: (index, count), "auto" or None.
        session: Goes on as the shard that was found.
        chunks: The dataset, if it is one of files.
        packs_evenly: Samples are packed, and all shards shall have the same number of batches.
    """

    def __init__(
        self,
        given: tuple[int, int] | Literal["auto"] | None,
        session: Session,
        chunks: Chunks | None,
        *,
        packs_evenly: bool,
    ) -> None:
        self._given, self._session, self._chunks, self._packs_evenly = given, session, chunks, packs_evenly
        self._is_checked = False

    def find(self) -> None:
        """``"auto"`` is asked for anew until the workers have started: process groups come up late."""
        session = self._session
        if self._given == "auto" and session.is_fresh:
            found = shard_of("auto")
            if found != session.shard:
                if self._chunks is not None:
                    check_chunked_shard(self._chunks, found)
                if self._packs_evenly:
                    check_packed_shard(found, even_shards=True)
                session.set_shard(found)

    def check(self) -> None:
        """As a loop or the workers begin. Called by the loader's own methods, whose caller a warning points to."""
        self.find()
        self._session.showing.watch()
        if self._given == "auto":
            check_still(self._session.shard)
        if not self._is_checked:
            self._is_checked = True
            warn_if_all_read_all(self._given, stacklevel=3)
