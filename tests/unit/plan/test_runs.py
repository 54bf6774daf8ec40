"""Runs are the same batches in the same order, only held together."""

from hypothesis import given
from hypothesis import strategies as st

from stoker.plan import Cursor, Plan, Run, runs


@given(
    length=st.integers(0, 200),
    size=st.integers(1, 9),
    shards=st.integers(1, 4),
    sizes=st.lists(st.integers(1, 7), min_size=1),
    taken=st.sets(st.integers(0, 20)),
)
def test_runs_hold_every_batch_once_in_order_and_never_cross_an_epoch(length, size, shards, sizes, taken):
    plan = Plan(length, size, shard=(0, shards))
    batches = [batch for epoch in (0, 1) for batch in plan.batches(epoch) if batch.position // plan.stride not in taken]
    cycle = iter(sizes * 1000)
    joined = list(runs(iter(batches), plan.stride, lambda: next(cycle)))
    assert [(run.epoch, start) for run in joined for start in run.positions] == [(b.epoch, b.position) for b in batches]
    assert all(1 <= run.size <= 7 for run in joined)
    sizes_of = {(b.epoch, b.position): b.stop - b.start for b in batches}
    assert all(run.samples == sizes_of[run.epoch, start] for run in joined for start in run.positions)


def test_a_run_splits_into_its_batches():
    plan = Plan(20, 5)
    (run,) = runs(Cursor().remaining(plan), plan.stride, lambda: 10)
    assert run == Run(0, 0, 5, 4, samples=5)
    assert run.split() == [Run(0, start, 5, samples=5) for start in (0, 5, 10, 15)]
