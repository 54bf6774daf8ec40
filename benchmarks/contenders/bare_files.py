"""The limit of chunk files: bare processes that run the very same reader, as many files each, and hand over nothing.

`in_batches`: they also make columns and cut batches of them, in memory of their own. Nothing is packed up, and a string
is made once.
"""

from __future__ import annotations

from itertools import count

from benchmarks.contenders.bare import Bare, Step
from benchmarks.contenders.contender import Job
from stoker.collation.columns import made
from stoker.sources.files.columns import Columns
from stoker.sources.files.readers import read_chunk
from stoker.sources.group_table import batches_of, table_of


def open_loader(job: Job, in_batches: bool) -> Bare:
    workload = job.workload

    def make_step(number: int) -> Step:
        mine = list(job.dataset)[number :: workload.workers]
        turns = count()

        def read() -> int:
            return len(read_chunk(mine[next(turns) % len(mine)]))

        def collate() -> int:
            samples = read_chunk(mine[next(turns) % len(mine)], gather=True)
            assert isinstance(samples, Columns)
            count = len(samples)
            table = made(table_of(samples, slice(0, count)))
            for _ in batches_of(table, [*range(0, count, workload.batch_size), count]):
                pass
            return count

        return collate if in_batches else read

    return Bare(make_step, workload.workers, workload.batch_size)
