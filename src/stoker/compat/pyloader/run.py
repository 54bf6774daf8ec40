"""A PyLoader's run: one way through all epochs, and the workers that it has for that."""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import Any

import stoker
from stoker.compat.arguments import own_cores
from stoker.compat.pyloader.chunks import Chunks
from stoker.compat.pyloader.work import Work


class Run:
    """Gives batch after batch. ``epoch`` is that of the batch that was given last."""

    def __init__(self, work: Work, chunks: Chunks, max_queue_size: int, seed: int) -> None:
        self.epoch = 0
        workers, prefetch = crew(max_queue_size, len(chunks.names) * chunks.epochs)
        self._work, self._chunks = work, chunks
        self._stream = stoker.stream(work, chunks, workers=workers, prefetch=prefetch, seed=seed)
        self._batches: deque[Any] = deque()  # of the chunk that is being handed out
        self._closed = False

    def __iter__(self) -> Run:
        return self

    def __next__(self) -> Any:
        if self._closed:
            raise stoker.ClosedError(
                "this loop was ended: its DataLoader was closed, or another loop over it has begun"
            )
        while not self._batches:
            epoch, batches = self._next_chunk()
            self._batches.extend(batches)
            self.epoch = epoch if batches else self.epoch
        return self._batches.popleft()

    def close(self) -> None:
        self._closed = True
        self._batches.clear()
        self._stream.close()

    def _next_chunk(self) -> Any:
        try:
            return next(self._stream)
        except stoker.WorkerDied as error:
            for number in error.indices:
                chunk = next(islice(self._chunks, number, None))
                error.add_note(
                    f"stoker: over {self._work.where(chunk)}; with max_queue_size=1 your own process reads it"
                )
            raise


def crew(max_queue_size: int, chunks: int) -> tuple[int, int]:
    """Workers, and chunks that each may have ahead: all of these, and the one being handed out, are in the queue."""
    ahead = max_queue_size - 1
    workers = min(ahead, own_cores(), chunks)
    return workers, max(1, ahead // max(1, workers))
