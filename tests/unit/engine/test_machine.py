"""The machine, driven by arbitrary events, against what a naive reader of the design would expect."""

from __future__ import annotations

from collections import Counter, deque

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from stoker.engine.machine import Machine
from stoker.engine.messages import (
    Asked,
    Deliver,
    Died,
    Fail,
    Finish,
    Finished,
    Mourn,
    Recall,
    Recalled,
    Released,
    Send,
    Sought,
    Spawn,
)
from stoker.errors import BugError
from stoker.plan import Run
from stoker.workers import Answer, Death
from stoker.workers.progress import at_batch

SAMPLES = 5  # in each batch


def singles(count: int, per_epoch: int = 5):
    return [Run(k // per_epoch, k % per_epoch, 1) for k in range(count)]


def answer(send: Send) -> Answer:
    return Answer(send.worker, send.ticket, send.slot, capacity=0, idle=0, results=[])


def samples(run: Run) -> int:
    return SAMPLES


def death(worker: int, cause: str = "SIGKILL (-9)", unbegun: tuple[int, ...] = (), nth: int = 0, **more) -> Died:
    return Died(Death(worker, cause, at_batch(0, nth), **more), unbegun)


def joined(runs, sizes):
    """The same batches in longer runs, none of which crosses an epoch."""
    out = []
    for run, size in zip(runs, sizes, strict=False):
        last = out[-1] if out else None
        if size and last and last.epoch == run.epoch and last.size < 3:
            out[-1] = last._replace(size=last.size + 1)
        else:
            out.append(run)
    return out


def batches_of(runs):
    return [single for run in runs for single in run.split()]


class World(RuleBasedStateMachine):
    """Workers, slots and a consumer as simple as can be; the machine has to keep them in order."""

    @initialize(
        workers=st.integers(1, 4),
        prefetch=st.integers(1, 3),
        in_order=st.booleans(),
        leave_out=st.booleans(),
        killers=st.sets(st.tuples(st.integers(0, 29), st.integers(0, SAMPLES - 1)), max_size=3),
        count=st.integers(0, 30),
        held_allowed=st.integers(0, 4),
        sizes=st.lists(st.booleans(), min_size=30, max_size=30),
    )
    def begin(self, workers, prefetch, in_order, leave_out, killers, count, held_allowed, sizes):
        self.window = workers * prefetch
        self.depth = min(2, prefetch)
        self.machine = Machine(
            workers=workers,
            window=self.window,
            depth=self.depth,
            in_order=in_order,
            deaths_allowed=3,
            leave_out=leave_out,
            held_allowed=held_allowed,
        )
        self.leave_out = leave_out
        self.in_order = in_order
        self.held_allowed = held_allowed
        self.queues = [deque() for _ in range(workers)]
        self.sizes = sizes
        self.expected = singles(count)
        self.killers = {(singles(30)[batch], place) for batch, place in killers}
        self.haunted = []
        self.got = []
        self.held = []
        self.deaths = Counter()
        self.random_deaths = Counter()
        self.divided = False
        self.waiting = False
        self.over = False
        assert self.machine.start() == [Spawn(n) for n in range(workers)]
        self.tell(Sought(iter(joined(self.expected, sizes)), samples))

    def tell(self, event):
        for instruction in self.machine.handle(event):
            self.carry_out(instruction)

    def carry_out(self, instruction):
        match instruction:
            case Send(worker=worker, slot=slot):
                busy = [send.slot for queue in self.queues for send in queue]
                assert slot not in busy + self.held + self.haunted, "a slot was given away while in use"
                self.queues[worker].append(instruction)
                assert len(self.queues[worker]) <= self.depth
            case Recall(worker=worker):
                # The front one has been begun; what stands behind it can still be taken back.
                queue = self.queues[worker]
                ticket = queue.pop().ticket if len(queue) > 1 else None
                self.tell(Recalled(worker, ticket))
            case Deliver(run=run, answer=answer, copy=copy, losses=losses):
                assert self.waiting
                self.waiting = False
                self.got.extend(run.split())
                lost = {(run, loss.place) for loss in losses}
                if not self.random_deaths[run]:
                    assert lost == {killer for killer in self.killers if killer[0] in run.split()}
                assert self.leave_out or not lost
                assert copy == (len(self.held) >= self.held_allowed)
                self.held.append(answer.slot)
            case Fail(run=run, deaths=deaths, begun=begun):
                assert self.waiting
                assert deaths == 3 if begun else deaths >= 3 * len(self.queues)
                assert not begun or self.deaths[run] >= 3
                assert not begun or not self.leave_out or self.random_deaths[run], "a search that must succeed failed"
                self.waiting = False
                self.got.append(run)
            case Finish():
                assert self.waiting
                self.waiting = False
                self.over = True
            case Mourn(run=run):
                assert run is None or run.size == 1
            case Spawn(worker=worker):
                assert not self.queues[worker]

    @precondition(lambda self: not self.waiting and not self.over)
    @rule()
    def ask(self):
        self.waiting = True
        self.tell(Asked())

    @rule(choice=st.integers(0, 3))
    def finish(self, choice):
        busy = [queue for queue in self.queues if queue]
        if busy:
            send = busy[choice % len(busy)][0]
            for nth, batch in enumerate(send.run.split(), 1):
                tried = {(batch, place) for place in range(SAMPLES) if place not in send.left_out}
                if tried & self.killers:
                    self.end(send.worker, 1, nth, haunted=False)
                    return
            self.queues[send.worker].popleft()
            self.tell(Finished(answer(send)))

    @rule(choice=st.integers(0, 3), begun=st.integers(0, 1), nth=st.integers(0, 3), haunted=st.booleans())
    def die(self, choice, begun, nth, haunted):
        """A worker that has begun the first run it was sent, or is still starting, ends, for no fault of the run."""
        worker = choice % len(self.queues)
        for send in list(self.queues[worker])[:begun]:
            nth = min(nth, send.run.size)
            self.random_deaths[send.run.split()[max(nth, 1) - 1]] += 1
        self.end(worker, begun, nth, haunted)

    def end(self, worker, begun, nth, haunted):
        lost = list(self.queues[worker])
        self.queues[worker].clear()
        for send in lost[:begun]:
            self.divided |= send.run.size > 1
            self.deaths[send.run.split()[max(nth, 1) - 1]] += 1
            if haunted:
                self.haunted.append(send.slot)
        unbegun = tuple(send.ticket for send in lost[begun:])
        self.tell(death(worker, unbegun=unbegun, nth=nth if begun else 0, haunted=haunted))

    @precondition(lambda self: self.held)
    @rule(choice=st.integers(0, 100))
    def release(self, choice):
        self.tell(Released(self.held.pop(choice % len(self.held))))

    @rule(skip=st.integers(0, 3))
    def seek(self, skip):
        """The consumer jumps: what it had not got is dropped, another stream begins."""
        self.expected = [run._replace(epoch=run.epoch + 100) for run in self.expected[skip:]]
        self.killers = {(run._replace(epoch=run.epoch + 100), place) for run, place in self.killers}
        self.got = []
        self.deaths, self.random_deaths = Counter(), Counter()
        self.over = False
        self.tell(Sought(iter(joined(self.expected, self.sizes)), samples))

    @invariant()
    def exactly_once_and_in_order(self):
        if not hasattr(self, "machine"):
            return
        if self.in_order:
            assert self.got == self.expected[: len(self.got)]
        else:
            assert not Counter(self.got) - Counter(self.expected)
            epochs = [run.epoch for run in self.got]
            assert epochs == sorted(epochs), "an epoch began before the one before it was over"

    @invariant()
    def no_more_than_the_window(self):
        if hasattr(self, "machine") and not self.divided:
            current = {run.epoch // 100 for run in self.expected}
            sent = [send for queue in self.queues for send in queue if send.run.epoch // 100 in current]
            assert len(sent) <= self.window

    @invariant()
    def whoever_waits_until_it_has_enough_waits_for_somebody(self):
        if hasattr(self, "machine") and not self.machine.has_enough:
            assert any(self.queues)

    def teardown(self):
        """Left alone, everything that was promised arrives."""
        if not hasattr(self, "machine"):
            return
        for _ in range(len(self.expected) + 1):
            if not self.waiting and not self.over:
                self.ask()
            while self.waiting:
                assert any(self.queues), "it hangs"
                self.finish(0)
        assert self.over
        assert Counter(self.got) == Counter(self.expected)
        if self.in_order:
            assert self.got == self.expected


TestMachine = World.TestCase
TestMachine.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)


def sends(instructions):
    return [step for step in instructions if isinstance(step, Send)]


def started(**options):
    machine = Machine(**options)
    machine.start()
    return machine


def test_the_first_batches_go_to_different_workers():
    machine = started(workers=3, window=6)
    first = sends(machine.handle(Sought(iter(singles(10)), samples)))
    assert [send.worker for send in first] == [0, 1, 2, 0, 1, 2]
    assert [send.run for send in first] == singles(6)


def test_workers_take_turns_though_one_could_do_it_all():
    machine = started(workers=3, window=3, depth=1)
    for send in sends(machine.handle(Sought(iter(singles(9)), samples))):
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
    first = sends(machine.handle(Sought(iter(singles(4)), samples)))
    assert [send.worker for send in first] == [0, 1, 0, 1]
    machine.handle(Finished(answer(first[1])))
    assert machine.handle(Finished(answer(first[3]))) == [Recall(0)]
    (again,) = machine.handle(Recalled(0, first[2].ticket))
    assert (again.worker, again.run) == (1, first[2].run)


def test_out_of_order_a_batch_that_a_window_of_others_has_overtaken_goes_to_another_worker():
    machine = started(workers=2, window=4, in_order=False)
    queue = sends(machine.handle(Sought(iter(singles(30, 30)), samples)))
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
    first = sends(machine.handle(Sought(iter(singles(4)), samples)))
    machine.handle(Finished(answer(first[1])))
    assert machine.handle(Finished(answer(first[3]))) == [Recall(0)]
    assert machine.handle(Recalled(0, None)) == []
    assert Recall(0) not in machine.handle(Asked())


def test_the_dead_workers_batches_are_issued_again_to_others():
    machine = started(workers=2, window=4)
    first = sends(machine.handle(Sought(iter(singles(4)), samples)))
    machine.handle(Finished(answer(first[1])))
    machine.handle(Finished(answer(first[3])))
    machine.handle(Recalled(0, None))
    instructions = machine.handle(death(0, unbegun=(first[2].ticket,)))
    assert instructions[:2] == [Mourn(death(0, unbegun=(first[2].ticket,)).death, first[0].run), Spawn(0)]
    assert [send.run for send in sends(instructions)] == [first[0].run, first[2].run]


def test_a_batch_that_kills_its_worker_again_and_again_is_given_up():
    machine = started(workers=1, window=1, depth=1, deaths_allowed=3)
    machine.handle(Sought(iter(singles(2)), samples))
    machine.handle(Asked())
    machine.handle(death(0, "a"))
    machine.handle(death(0, "b"))
    instructions = machine.handle(death(0, "c"))
    assert Fail(singles(1)[0], death(0, "c").death, 3, begun=True) in instructions


def test_a_worker_that_dies_before_it_has_begun_does_not_blame_the_batch():
    machine = started(workers=2, window=1, depth=1)
    (send,) = sends(machine.handle(Sought(iter(singles(1)), samples)))
    for _ in range(5):
        (send,) = sends(machine.handle(death(send.worker, unbegun=(send.ticket,))))
        assert send.run == singles(1)[0]


def test_workers_that_never_begin_anything_are_not_started_for_ever():
    machine = started(workers=2, window=2, depth=1)
    first = sends(machine.handle(Sought(iter(singles(2)), samples)))
    machine.handle(Asked())
    found = []
    for send in first * 4:
        found += machine.handle(death(send.worker, unbegun=(send.ticket,)))
    (fail,) = (step for step in found if isinstance(step, Fail))
    assert (fail.run, fail.deaths, fail.begun) == (singles(1)[0], 7, False)


def test_a_run_that_kills_its_worker_is_issued_again_batch_by_batch():
    machine = started(workers=1, window=2, depth=2)
    run = Run(0, 0, 4, size=3)
    machine.handle(Sought(iter([run, Run(0, 12, 4)]), samples))
    machine.handle(Asked())
    again = sends(machine.handle(death(0, unbegun=(1,), nth=2)))
    assert [send.run for send in again] == [Run(0, 0, 4), Run(0, 4, 4)]
    deliver, third = machine.handle(Finished(answer(again[0])))
    assert deliver.run == Run(0, 0, 4)
    assert third.run == Run(0, 8, 4)


def test_slots_are_reused_the_last_released_first():
    machine = started(workers=1, window=1, depth=1)
    (send,) = sends(machine.handle(Sought(iter(singles(9)), samples)))
    slots = [send.slot]
    for _ in range(5):
        machine.handle(Asked())
        deliver, send = machine.handle(Finished(answer(send)))
        slots.append(send.slot)
        machine.handle(Released(deliver.answer.slot))
    assert slots == [0, 1, 0, 1, 0, 1]


def test_nonsense_is_a_bug_that_says_so():
    machine = started(workers=1, window=1)
    (send,) = sends(machine.handle(Sought(iter(singles(1)), samples)))
    machine.handle(Finished(answer(send)))
    with pytest.raises(BugError, match="never had"):
        machine.handle(Finished(answer(send)))
    machine.handle(Asked())
    machine = started(workers=1, window=1)
    machine.handle(Sought(iter(singles(1)), samples))
    machine.handle(Asked())
    with pytest.raises(BugError, match="while it waits"):
        machine.handle(Asked())
