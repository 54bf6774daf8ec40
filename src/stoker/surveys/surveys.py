"""All surveys of the files of one loader."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from stoker.plan import Plan
from stoker.plan.permutation import Positions
from stoker.sources import Retry
from stoker.sources.chunks import Chunks
from stoker.surveys.counting import Counting
from stoker.surveys.surveying import Surveying
from stoker.surveys.worker_map import Crew
from stoker.workers import Workers

if TYPE_CHECKING:
    from stoker.sources.files.listing import Listing
    from stoker.sources.files.parts import Parts


class Surveys:
    """Finds the parts of files, and counts their samples.

    Args:
        chunks: The files.
        plan: Its batch size tells where files are best cut.
        workers: Who looks into them.
        init: Called in each worker before all else.
        retry: Of what cannot be read.
        leave_out: Parts that cannot be read have no samples.
    """

    def __init__(
        self,
        chunks: Chunks,
        plan: Plan,
        workers: Workers,
        init: Callable[[], object] | None,
        retry: Retry | None,
        *,
        leave_out: bool,
    ) -> None:
        multiple = 1 if chunks.across_chunks else plan.batch_size or 1
        self._crew = Crew(workers, init, retry)
        self._counting = Counting(chunks, self._crew, leave_out=leave_out)
        self._surveying = Surveying(chunks.read is not None, multiple, chunks.selection, self._crew)

    def parts(self, listing: Listing) -> Parts:
        return self._surveying.parts(listing)

    def of_parts(self, parts: Parts) -> Positions:
        return self._counting.of_parts(parts)

    def of_files(self, parts: Parts) -> Positions | None:
        return self._counting.of_files(parts)

    def close(self) -> None:
        """For good. From any thread, and from a signal's handler."""
        self._crew.is_closed = True
        self._counting.close()
        self._surveying.close()
