"""The limit of chunk files: bare processes that run the very same reader, as many files each, and hand over nothing.

`in_batches`: they also cut and collate batches as a worker does, into memory of their own.
"""

from __future__ import annotations

from itertools import count

from benchmarks.contenders.bare import Bare, Step
from benchmarks.contenders.contender import Job
from stoker.collate.columns import made
from stoker.sources.chunks import ReadGroup, Reading
from stoker.sources.files.readers import read_chunk


def open_loader(job: Job, in_batches: bool) -> Bare:
    workload = job.workload
    group = ReadGroup(None, workload.batch_size, None, across_chunks=True, drop_last=False, leave_out=False)

    def make_step(number: int) -> Step:
        mine = list(enumerate(job.dataset))[number :: workload.workers]
        turns = count()

        def read() -> int:
            return len(read_chunk(mine[next(turns) % len(mine)][1]))

        def collate() -> int:
            turn = next(turns)
            found = group(Reading((mine[turn % len(mine)],), key=None, start=0, stop=None, lead=0))
            found._replace(made=[made(batch) for batch in found.made], table=made(found.table)).batches()
            return int(found.sizes.sum()) + len(found.rest)

        return collate if in_batches else read

    return Bare(make_step, workload.workers, workload.batch_size)
