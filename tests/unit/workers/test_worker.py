"""What a worker makes of a request, wherever it lives."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest

from stoker.memory import Slots
from stoker.plan import Plan, Run
from stoker.sources import IndexedSource
from stoker.workers import Failed, Made, Request, SlotTransport
from stoker.workers.progress import MAKING_THE_DATASET, nth_batch
from stoker.workers.randomness import BorrowedGenerators
from stoker.workers.transport import Writer
from stoker.workers.worker import Job, Worker


class Squares:
    """Sample i is i squared; 13 raises."""

    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> int:
        if index == 13:
            raise KeyError(index)
        return index * index


class Bench:
    """A worker, and the consumer's side of its transport."""

    def __init__(self, transport: SlotTransport, dataset: Any = None, **job: Any) -> None:
        self.transport = transport
        self.place = [0]
        source = IndexedSource.of(Squares() if dataset is None else dataset)
        self.job = Job(source, Plan(40, 4), job.pop("collate", None), job.pop("skip_errors", False), **job)
        writer = Writer(transport.slots, shared=True)
        self.worker = Worker(3, self.job, writer, -1, BorrowedGenerators(), self.place)

    def run(self, start: int = 0, size: int = 1, **request: Any) -> list[Made | Failed]:
        """``start``: the first batch, each of four samples."""
        answer = self.worker.run(Request(8, Run(0, 4 * start, 4, size), request.pop("length", 40), 2, **request))
        assert (answer.worker, answer.ticket, answer.slot) == (3, 8, 2)
        return answer.results

    def opened(self, results: list[Any]) -> list[Any]:
        self.transport.lend(2, len(results))
        return [self.transport.open(2, result.packed)[0].tolist() for result in results]


@pytest.fixture
def transport():
    with contextlib.closing(SlotTransport(Slots.create())) as made:
        yield made


def test_it_makes_every_batch_of_a_run(transport):
    bench = Bench(transport)
    results = bench.run(start=5, size=3)
    squares = [index * index for index in range(20, 32)]
    assert bench.opened(results) == [squares[:4], squares[4:8], squares[8:]]
    assert [result.samples for result in results] == [4, 4, 4]
    assert nth_batch(bench.place[0]) == 3


def test_a_batch_that_fails_keeps_none_of_the_others_from_being_made(transport):
    bench = Bench(transport)
    first, failed, last = bench.run(start=2, size=3)
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, KeyError)
    assert "stoker: in worker 3, batch 3 of epoch 0" in failed.error.__notes__
    assert bench.opened([first, last]) == [[64, 81, 100, 121], [256, 289, 324, 361]]


def test_a_sample_that_may_be_skipped_is_left_out_and_named(transport):
    bench = Bench(transport, skip_errors=True)
    (made,) = bench.run(start=3)
    assert bench.opened([made]) == [[144, 196, 225]]
    assert [(one.sample, one.error) for one in made.skipped] == [(13, "KeyError: 13")]


def test_samples_that_are_to_be_left_out_are_not_touched(transport):
    bench = Bench(transport)
    assert bench.opened(bench.run(start=3, left_out=(1,))) == [[144, 196, 225]]


def test_a_dataset_that_cannot_be_made_is_not_tried_again(transport):
    tries = []

    def factory():
        tries.append(bench.place[0])
        raise OSError("no such disk")

    bench = Bench(transport, factory)
    for _ in range(2):
        (failed,) = bench.run()
        assert isinstance(failed.error, OSError)
    assert tries == [MAKING_THE_DATASET]


def test_init_comes_before_the_dataset_is_made(transport):
    order = []
    bench = Bench(transport, lambda: [order.append("dataset"), np.arange(40)][1], init=lambda: order.append("init"))
    assert bench.worker.length() == 40
    assert order == ["init", "dataset"]


def test_another_length_than_the_plans_is_an_error_that_says_so(transport):
    (failed,) = Bench(transport).run(length=39)
    assert "40 samples in worker 3 but 39 in the plan" in str(failed.error)


def test_times_follow_one_another_and_only_the_first_batch_of_a_run_was_waited_for(transport):
    bench = Bench(transport)
    bench.run()
    first, second = (result.timing for result in bench.run(size=2))
    assert first.free < first.began <= first.fetched <= first.written
    assert first.written <= second.began == second.free
    assert second.began <= second.fetched <= second.written
    (third,) = (result.timing for result in bench.run())
    assert second.written <= third.free < third.began
