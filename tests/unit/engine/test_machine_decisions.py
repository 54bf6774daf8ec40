"""What the machine does in one situation after another: who gets a run, and what becomes of those of the dead."""

from __future__ import annotations

from collections import deque

import pytest

from stoker.engine.machine import Machine
from stoker.engine.messages import (
    Asked,
    Deliver,
    Ended,
    Fail,
    Finished,
    LogDeath,
    Offered,
    Paused,
    Recall,
    Recalled,
    Released,
    Resumed,
    Send,
    Sought,
    Spawn,
)
from stoker.engine.recovery import SUSPICIONS_ALLOWED
from stoker.errors import BugError
from stoker.plan import Run
from tests.unit.engine.events import answer, death, died_at_work, singles


def sends(instructions):
    return [step for step in instructions if isinstance(step, Send)]


class Fed(Machine):
    """A machine that is offered these runs whenever it wants some."""

    def feed(self, runs):
        self.agenda = deque(runs)
        return self.handle(Sought())

    def handle(self, event):
        out = super().handle(event)
        while self.wants:
            out += super().handle(Offered(self.agenda.popleft()) if self.agenda else Ended())
        return out


def started(**options):
    machine = Fed(**options)
    machine.start()
    return machine


def test_the_first_batches_go_to_different_workers():
    machine = started(workers=3, window=6)
    first = sends(machine.feed(singles(10)))
    assert [send.worker for send in first] == [0, 1, 2, 0, 1, 2]
    assert [send.run for send in first] == singles(6)


def test_workers_take_turns_though_one_could_do_it_all():
    machine = started(workers=3, window=3, depth=1)
    for send in sends(machine.feed(singles(9))):
        machine.handle(Finished(answer(send)))
    workers = []
    for _ in range(6):
        (send,) = sends(machine.handle(Asked()))
        machine.handle(Finished(answer(send)))  # before the consumer asks again
        workers.append(send.worker)
    assert workers == [0, 1, 2, 0, 1, 2]


def test_a_slow_batch_holds_up_nothing_but_itself():
    """Worker 0 is stuck at its first batch: the one that waits behind it is made by worker 1."""
    machine = started(workers=2, window=4)
    first = sends(machine.feed(singles(4)))
    assert [send.worker for send in first] == [0, 1, 0, 1]
    machine.handle(Finished(answer(first[1])))
    assert machine.handle(Finished(answer(first[3]))) == [Recall(0)]
    (again,) = machine.handle(Recalled(0, first[2].ticket))
    assert (again.worker, again.run) == (1, first[2].run)


def test_out_of_order_a_batch_that_a_window_of_others_has_overtaken_goes_to_another_worker():
    machine = started(workers=2, window=4, in_order=False)
    queue = sends(machine.feed(singles(30, 30)))
    stuck, waiting = (send for send in queue if send.worker == 0)
    for _ in range(9):  # worker 1 goes on, worker 0 does not
        send = next(send for send in queue if send.worker == 1)
        queue.remove(send)
        for event in (Asked(), Finished(answer(send))):
            instructions = machine.handle(event)
            queue.extend(sends(instructions))
            if Recall(0) in instructions:
                victim = [send for send in queue if send.worker == 0][-1]
                queue.remove(victim)
                queue.extend(sends(machine.handle(Recalled(0, victim.ticket))))
            if any(send.worker == 1 and send.run == waiting.run for send in queue):
                assert stuck in queue
                return
    pytest.fail("the batch that waits behind the stuck one was left there")


def test_a_recall_that_came_too_late_is_not_repeated_at_once():
    machine = started(workers=2, window=4)
    first = sends(machine.feed(singles(4)))
    machine.handle(Finished(answer(first[1])))
    assert machine.handle(Finished(answer(first[3]))) == [Recall(0)]
    assert machine.handle(Recalled(0, None)) == []
    assert Recall(0) not in machine.handle(Asked())


def test_the_dead_workers_batches_are_issued_again_to_others():
    machine = started(workers=2, window=4)
    first = sends(machine.feed(singles(4)))
    machine.handle(Finished(answer(first[1])))
    machine.handle(Finished(answer(first[3])))
    machine.handle(Recalled(0, None))
    instructions = machine.handle(death(0, unbegun=(first[2].ticket,)))
    assert instructions[:2] == [LogDeath(death(0, unbegun=(first[2].ticket,)).death, first[0].run), Spawn(0)]
    assert [send.run for send in sends(instructions)] == [first[0].run, first[2].run]


def test_a_batch_that_kills_its_worker_again_and_again_is_given_up():
    machine = started(workers=1, window=1, depth=1, deaths_allowed=3)
    machine.feed(singles(2))
    machine.handle(Asked())
    machine.handle(death(0, "a"))
    machine.handle(death(0, "b"))
    instructions = machine.handle(death(0, "c"))
    assert Fail(singles(1)[0], death(0, "c").death, 3, begun=True) in instructions


def test_a_worker_that_dies_before_it_has_begun_does_not_blame_the_batch():
    machine = started(workers=2, window=1, depth=1)
    (send,) = sends(machine.feed(singles(1)))
    for _ in range(5):
        (send,) = sends(machine.handle(death(send.worker, unbegun=(send.ticket,))))
        assert send.run == singles(1)[0]


def test_a_batch_is_not_given_up_for_many_losses_of_nodes_at_once_but_not_sent_to_death_for_ever():
    machine = started(workers=1, window=1)
    (send,) = sends(machine.feed(singles(1)))
    machine.handle(Asked())
    for _ in range(SUSPICIONS_ALLOWED + 2):
        (again,) = sends(machine.handle(died_at_work(0)))
        assert again.ticket == send.ticket
    (fail,) = [step for step in machine.handle(died_at_work(0)) if isinstance(step, Fail)]
    assert (fail.run, fail.deaths, fail.begun) == (send.run, 3, True)


def test_workers_that_never_begin_anything_are_not_started_for_ever():
    machine = started(workers=2, window=2, depth=1)
    first = sends(machine.feed(singles(2)))
    machine.handle(Asked())
    found = []
    for send in first * 4:
        found += machine.handle(death(send.worker, unbegun=(send.ticket,)))
    (fail,) = (step for step in found if isinstance(step, Fail))
    assert (fail.run, fail.deaths, fail.begun) == (singles(1)[0], 7, False)


def test_a_run_that_kills_its_worker_is_issued_again_batch_by_batch():
    machine = started(workers=1, window=2, depth=2)
    run = Run(0, 0, 4, size=3)
    machine.feed([run, Run(0, 12, 4)])
    machine.handle(Asked())
    again = sends(machine.handle(death(0, unbegun=(1,), nth=2)))
    assert [send.run for send in again] == [Run(0, 0, 4), Run(0, 4, 4)]
    deliver, third = machine.handle(Finished(answer(again[0])))
    assert deliver.run == Run(0, 0, 4)
    assert third.run == Run(0, 8, 4)


def test_slots_are_reused_the_last_released_first():
    machine = started(workers=1, window=1, depth=1)
    (send,) = sends(machine.feed(singles(9)))
    slots = [send.slot]
    for _ in range(5):
        machine.handle(Asked())
        deliver, send = machine.handle(Finished(answer(send)))
        slots.append(send.slot)
        machine.handle(Released(deliver.answer.slot))
    assert slots == [0, 1, 0, 1, 0, 1]


def test_nonsense_is_a_bug_that_says_so():
    machine = started(workers=1, window=1)
    (send,) = sends(machine.feed(singles(1)))
    machine.handle(Finished(answer(send)))
    with pytest.raises(BugError, match="never had"):
        machine.handle(Finished(answer(send)))
    machine.handle(Asked())
    machine = started(workers=1, window=1)
    machine.feed(singles(1))
    machine.handle(Asked())
    with pytest.raises(BugError, match="while it waits"):
        machine.handle(Asked())


def pinned(*workers):
    return [run._replace(worker=worker) for run, worker in zip(singles(len(workers)), workers, strict=True)]


def test_a_pinned_run_waits_for_its_worker_and_others_pass_it_by():
    machine = started(workers=2, window=6, depth=1)
    first = sends(machine.feed(pinned(0, 0, None, None, 1)))
    assert [(send.worker, send.run.position) for send in first] == [(0, 0), (1, 2)]
    (third,) = sends(machine.handle(Finished(answer(first[1]))))
    assert (third.worker, third.run.position) == (1, 3)
    (second,) = sends(machine.handle(Finished(answer(first[0]))))
    assert (second.worker, second.run.position) == (0, 1)


def test_a_pinned_run_is_passed_by_only_as_far_as_credit_goes():
    machine = started(workers=2, window=3, depth=1)
    queue = sends(machine.feed(pinned(0, 0, None, None, None)))
    queue += sends(machine.handle(Finished(answer(queue[1]))))
    assert [send.run.position for send in queue] == [0, 2]


def test_a_pinned_run_is_not_recalled_though_a_worker_idles():
    machine = started(workers=2, window=4)
    first = sends(machine.feed(pinned(0, 0, 1)))
    assert [send.worker for send in first] == [0, 0, 1]
    assert machine.handle(Finished(answer(first[2]))) == []


def test_a_pinned_run_whose_worker_dies_goes_to_the_one_that_takes_its_place():
    machine = started(workers=3, window=6)
    first = sends(machine.feed(pinned(1, 1, None)))
    again = sends(machine.handle(death(1, unbegun=(first[1].ticket,))))
    assert [(send.worker, send.run) for send in again] == [(1, first[0].run), (1, first[1].run)]


def test_a_run_that_was_not_wanted_or_is_for_a_worker_that_is_not_there_is_a_bug():
    machine = Machine(workers=1, window=1)
    with pytest.raises(BugError, match="no credit"):
        machine.handle(Offered(singles(1)[0]))
    machine.handle(Sought())
    with pytest.raises(BugError, match="not there"):
        machine.handle(Offered(*pinned(1)))


def test_while_the_next_run_is_slow_to_come_what_is_there_is_delivered_and_idle_workers_help():
    machine = Machine(workers=2, window=4)
    machine.handle(Sought())
    first = [send for run in singles(3) for send in sends(machine.handle(Offered(run)))]
    assert [send.worker for send in first] == [0, 1, 0]
    assert machine.handle(Paused()) == []
    assert machine.handle(Finished(answer(first[1]))) == [Recall(0)]
    machine.handle(Recalled(0, None))
    machine.handle(Finished(answer(first[0])))
    assert [type(step) for step in machine.handle(Asked())] == [Deliver]
    assert machine.is_paused
    assert not machine.wants
    machine.handle(Resumed())
    assert machine.wants
