"""The driver: what the machine says is done, and what happens is told to it."""

from __future__ import annotations

import gc
import logging
import weakref

import pytest

from stoker.engine.messages import Asked, Deliver, Died, Finished, Released, Send, Spawn
from stoker.errors import BugError, ShippingError
from stoker.workers import Answer, Death, Failed
from tests.unit.engine.fakes import Bench


@pytest.fixture
def bench():
    made = Bench()
    made.begin()
    return made


def test_all_workers_are_started_and_get_as_much_as_there_is_credit_for(bench):
    assert bench.backend.started == [0, 1]
    assert bench.sent() == {0: [0, 2], 1: [1, 3]}


def test_batches_are_handed_out_in_order_whoever_is_first(bench):
    bench.backend.answers(1)
    bench.backend.when_waited = [lambda: bench.backend.answers(0)]
    assert [bench.take().batch.position for _ in range(2)] == [0, 1]
    assert sorted(bench.transport.arrivals) == [0, 1]


def test_it_waits_only_while_nothing_is_ready(bench):
    bench.backend.answers(0)
    delivery = bench.take()  # a wait would fail
    assert (delivery.batch.position, delivery.waited) == (0, 0)
    bench.backend.when_waited = [lambda: bench.backend.answers(1)]
    assert bench.take().waited > 0


def test_a_slot_that_nobody_sees_any_more_is_used_again(bench):
    slots = []
    for position in range(10):
        if bench.sent()[position % 2]:
            bench.backend.answers(position % 2)
        slots.append(bench.take().data[0])
        bench.transport.let_go_of = [slots[-1]]
    assert len(set(slots)) <= 5, slots


def test_what_is_held_and_lent_can_be_read(bench):
    assert (bench.driver.usage().runs, bench.driver.usage().workers, bench.driver.usage().held) == (4, 2, 0)
    bench.backend.answers(0)
    bench.take()
    usage = bench.driver.usage()
    assert (usage.held, usage.slots) == (1, 5)


def test_after_the_last_batch_comes_the_end(bench):
    for position in range(10):
        bench.backend.answers(position % 2)
        assert bench.take().batch.position == position
    assert bench.take().ended


def test_a_worker_that_died_is_started_again_and_what_it_had_is_sent_again(bench, caplog):
    bench.backend.says(Death(0, "SIGKILL (-9)"))
    bench.backend.answers(1)
    bench.backend.when_waited = [lambda: [bench.backend.answers(worker) for worker in (0, 1) if bench.sent()[worker]]]
    with caplog.at_level(logging.WARNING, "stoker"):
        assert bench.take().batch.position == 0
    assert bench.backend.started == [0, 1, 0]
    assert "worker 0 died by SIGKILL (-9)" in caplog.text


def test_an_error_of_the_users_comes_in_the_place_of_its_batch(bench):
    error = ValueError("of the user's")
    bench.backend.answers(0, Failed(error))
    bench.backend.answers(1)
    assert bench.take().error is error
    assert bench.transport.dropped == [0]
    assert bench.take().batch.position == 1


def test_a_batch_that_cannot_be_opened_is_an_error_in_its_place(bench):
    bench.transport.error = MemoryError("no room")
    bench.backend.answers(0)
    assert bench.take().error is bench.transport.error
    bench.transport.error = None
    bench.backend.answers(1)
    assert bench.take().error is None


def test_a_request_that_cannot_be_sent_is_an_error_in_its_place():
    bench = Bench(workers=1, prefetch=1)
    bench.backend.refusal = ShippingError("cannot be pickled")
    bench.begin()
    assert bench.take().error is bench.backend.refusal


def test_who_is_interrupted_from_another_thread_gets_nothing_and_can_begin_again(bench):
    bench.backend.when_waited = [bench.driver.interrupt]
    assert bench.take() is None
    assert bench.backend.calls == ["wake"]
    bench.begin()
    for worker in (0, 1):
        while bench.sent()[worker]:
            bench.backend.answers(worker)
    assert bench.take().batch.position == 0


def test_an_interrupt_while_it_waits_leaves_it_sound(bench):
    def ctrl_c():
        raise KeyboardInterrupt

    bench.backend.when_waited = [ctrl_c, lambda: bench.backend.answers(0)]
    with pytest.raises(KeyboardInterrupt):
        bench.take()
    assert bench.driver.is_sound
    assert bench.take().batch.position == 0


def test_workers_are_ended_before_their_memory_goes_also_if_that_fails(bench, monkeypatch):
    bench.driver.close()
    assert bench.backend.calls == ["backend closed", "transport closed"]

    def broken():
        raise OSError("no")

    other = Bench()
    monkeypatch.setattr(other.backend, "close", broken)
    with pytest.raises(OSError, match="no"):
        other.driver.close()
    assert other.backend.calls == ["transport closed"]


def test_the_tap_hears_all_that_happens_and_all_that_is_done_in_order(bench):
    heard = []
    bench.driver.tap.listen(lambda time, message: heard.append((time, message)))
    bench.backend.answers(0)
    bench.transport.let_go_of = []
    bench.take()
    bench.transport.let_go_of = [0]
    bench.backend.says(Death(1, "SIGKILL (-9)"))
    bench.backend.when_waited = [lambda: bench.backend.answers(1)]
    bench.take()
    kinds = [type(message) for _, message in heard]
    assert [kind for kind in kinds if kind in (Asked, Finished, Deliver, Released, Died, Spawn)] == [
        *(Asked, Finished, Deliver),
        *(Released, Asked, Died, Spawn, Finished, Deliver),
    ]
    assert Send in kinds
    times = [time for time, _ in heard]
    assert times == sorted(times)
    bench.driver.tap.listen(None)
    bench.backend.answers(0)
    bench.take()
    assert len(heard) == len(times)


def test_a_bug_carries_its_story(bench):
    bench.backend.answers(0)
    bench.take()
    bench.backend.says(Answer(1, ticket=77, slot=5, results=[]))
    with pytest.raises(BugError) as caught:
        bench.take()
    (story,) = caught.value.__notes__
    lines = story.splitlines()
    assert "events" in lines[0]
    assert lines[1:3] == ["    Spawn(worker=0)", "    Spawn(worker=1)"]
    assert "\n    Send(worker=0, ticket=0, run=Run(epoch=0" in story
    assert " ms: Asked()\n" in story
    assert " ms: Finished(ticket=0)\n    Deliver(run=Run(epoch=0" in story
    assert lines[-1] == "0.000 ms: Finished(ticket=77)"


def test_the_story_is_bounded():
    bench = Bench(workers=1, samples=500)
    bench.begin()
    for _ in range(400):
        bench.backend.answers(0)
        bench.transport.let_go_of = [bench.take().data[0]]
    assert 200 < len(bench.driver.tap.story().splitlines()) < 400


def test_the_story_keeps_no_result_alive(bench):
    """Of an error, its frames: they would hold what the user has let go of."""
    error = type("OfTheUsers", (ValueError,), {})()
    bench.backend.answers(0, Failed(error))
    delivery = bench.take()
    assert delivery.error is error
    gone = weakref.ref(error)
    bench.backend.answers(1)
    bench.take()
    del error, delivery
    gc.collect()
    assert gone() is None
