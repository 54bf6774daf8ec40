"""The machine, driven by arbitrary events, against what a naive reader of the design would expect."""

from __future__ import annotations

from collections import Counter, deque

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from stoker.engine.machine import Machine
from stoker.engine.messages import (
    Allowed,
    Arrived,
    Asked,
    Deliver,
    Ended,
    Fail,
    Finish,
    Finished,
    Left,
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
from tests.unit.engine.events import SAMPLES, answer, death, died_at_work, singles


def joined(runs, sizes):
    """The same batches in longer runs, none of which crosses an epoch, or is for two workers."""
    out = []
    for run, size in zip(runs, sizes, strict=False):
        last = out[-1] if out else None
        if size and last and (last.epoch, last.worker) == (run.epoch, run.worker) and last.size < 3:
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
        pins=st.lists(st.one_of(st.none(), st.integers(0, 3)), min_size=30, max_size=30),
        slow=st.sets(st.integers(0, 29), max_size=10),
        kind=st.sampled_from(["there", "announced", "elastic"]),
    )
    def begin(self, workers, prefetch, in_order, leave_out, killers, count, held_allowed, sizes, pins, slow, kind):
        announced = kind != "there"
        self.prefetch, self.is_elastic, self.times = prefetch, kind == "elastic", 1
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
            announced=announced,
            share=prefetch if self.is_elastic else None,
        )
        self.announced = announced
        self.up = set() if announced else set(range(workers))
        self.leave_out = leave_out
        self.in_order = in_order
        self.held_allowed = held_allowed
        self.queues = [deque() for _ in range(workers)]
        self.sizes = sizes
        pinned = [run._replace(worker=pin and pin % workers) for run, pin in zip(singles(30), pins, strict=True)]
        self.expected = pinned[:count]
        self.slow = slow  # before the nth run that is asked for, the agenda says "not yet"
        self.killers = {(pinned[batch], place) for batch, place in killers}
        self.may_still_write = []
        self.got = []
        self.held = []
        self.deaths = Counter()
        self.random_deaths = Counter()
        self.suspicions = Counter()
        self.divided = False
        self.era = 0
        self.waiting = False
        self.over = False
        assert self.machine.start() == [Spawn(n) for n in range(workers)]
        assert not self.machine.wants
        self.begin_anew()

    def begin_anew(self):
        self.agenda, self.asked_for, self.ended = deque(joined(self.expected, self.sizes)), 0, False
        self.tell(Sought())

    def tell(self, event):
        for instruction in self.machine.handle(event):
            self.carry_out(instruction)

    def offer(self):
        """As a driver does: the next run, or that it is slow to come, or that there are no more."""
        assert not self.ended, "it wants more, though it was told that there are none"
        self.asked_for += 1
        if self.asked_for - 1 in self.slow:
            self.tell(Paused())
            assert self.machine.is_paused
        elif self.agenda:
            self.tell(Offered(self.agenda.popleft()))
        else:
            self.ended = True
            self.tell(Ended())

    @precondition(lambda self: self.machine.wants)
    @rule(most=st.integers(1, 9))
    def offer_some(self, most):
        """Slowly: other things may happen in between."""
        while most and self.machine.wants:
            self.offer()
            most -= 1

    @precondition(lambda self: self.machine.is_paused)
    @rule()
    def resume(self):
        assert not self.machine.wants
        self.tell(Resumed())
        assert not self.machine.is_paused

    def carry_out(self, instruction):
        match instruction:
            case Send(worker=worker, slot=slot):
                assert instruction.run.worker in (None, worker), "it was pinned to another worker"
                assert worker in self.up, "it was sent to a worker that is not up"
                busy = [send.slot for queue in self.queues for send in queue]
                assert slot not in busy + self.held + self.may_still_write, "a slot was given away while in use"
                self.queues[worker].append(instruction)
                assert len(self.queues[worker]) <= self.depth
            case Recall(worker=worker):
                # The front one has been begun; what stands behind it can still be taken back.
                queue = self.queues[worker]
                taken_back = queue.pop() if len(queue) > 1 else None
                if taken_back is not None and taken_back.run.epoch // 100 == self.era:
                    assert taken_back.run.worker is None, "a pinned run was recalled"
                self.tell(Recalled(worker, taken_back and taken_back.ticket))
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
            case LogDeath(run=run):
                assert run is None or run.size == 1
            case Spawn(worker=worker):
                assert not self.queues[worker]
                self.up -= {worker} if self.announced else set()

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
                    self.end(send.worker, 1, nth, may_still_write=False)
                    return
            self.queues[send.worker].popleft()
            self.tell(Finished(answer(send)))

    @rule(choice=st.integers(0, 3), begun=st.integers(0, 1), nth=st.integers(0, 3), may_still_write=st.booleans())
    def die(self, choice, begun, nth, may_still_write):
        """A worker that has begun the first run it was sent, or is still starting, ends, for no fault of the run."""
        worker = choice % len(self.queues)
        for send in list(self.queues[worker])[:begun]:
            nth = min(nth, send.run.size)
            self.random_deaths[send.run.split()[max(nth, 1) - 1]] += 1
        self.end(worker, begun, nth, may_still_write)

    @rule(choice=st.integers(0, 3), begun=st.integers(0, 2))
    def die_at_work(self, choice, begun):
        """A worker ends, and nobody can tell which of its runs it was at, nor at which batch: none is to blame."""
        worker = choice % len(self.queues)
        lost = list(self.queues[worker])
        self.divided |= any(send.run.size > 1 for send in lost[:begun])
        for run in [send.run for send in lost[:begun] if send.run.size == 1]:
            self.suspicions[run] += 1
            if self.suspicions[run] > SUSPICIONS_ALLOWED:
                self.deaths[run] += 1
                self.random_deaths[run] += 1
        self.lose(worker)
        self.tell(died_at_work(worker, tuple(send.ticket for send in lost[begun:])))

    @precondition(lambda self: len(self.up) < len(self.queues))
    @rule(choice=st.integers(0, 3))
    def arrive(self, choice):
        coming = [worker for worker in range(len(self.queues)) if worker not in self.up]
        worker = coming[choice % len(coming)]
        self.up.add(worker)
        self.tell(Arrived(worker))

    @precondition(lambda self: self.announced)
    @rule(choice=st.integers(0, 3))
    def leave(self, choice):
        """It may have something to make, and answers that."""
        if self.up:
            worker = sorted(self.up)[choice % len(self.up)]
            self.up.discard(worker)
            self.tell(Left(worker))

    @precondition(lambda self: self.is_elastic)
    @rule(times=st.integers(1, 3))
    def allow(self, times):
        self.times = times
        self.window = max(self.window, self.prefetch * times * len(self.queues))
        self.tell(Allowed(times))

    def lose(self, worker):
        self.queues[worker].clear()
        if self.announced:
            self.up.discard(worker)

    def end(self, worker, begun, nth, may_still_write):
        lost = list(self.queues[worker])
        self.lose(worker)
        for send in lost[:begun]:
            self.divided |= send.run.size > 1
            self.deaths[send.run.split()[max(nth, 1) - 1]] += 1
            if may_still_write:
                self.may_still_write.append(send.slot)
        unbegun = tuple(send.ticket for send in lost[begun:])
        self.tell(death(worker, unbegun=unbegun, nth=nth if begun else 0, may_still_write=may_still_write))

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
        self.deaths, self.random_deaths, self.suspicions = Counter(), Counter(), Counter()
        self.over = False
        self.era += 1
        self.begin_anew()

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
            sent = [send for queue in self.queues for send in queue if send.run.epoch // 100 == self.era]
            assert len(sent) <= self.window
            taken_on = len(batches_of(joined(self.expected, self.sizes))) - len(batches_of(self.agenda))
            assert taken_on - len(self.got) <= 3 * self.window, "it took on more than its credit"

    @invariant()
    def it_wants_a_run_only_while_a_worker_has_room_for_it(self):
        if hasattr(self, "machine") and self.machine.wants and self.up:
            assert any(len(self.queues[worker]) < self.depth for worker in self.up)

    @invariant()
    def where_workers_come_and_go_it_wants_a_run_only_within_the_share_of_those_that_are_up(self):
        if hasattr(self, "machine") and self.is_elastic and self.machine.wants:
            assert self.machine.usage.runs < self.prefetch * self.times * max(len(self.up), 1)

    @invariant()
    def whoever_waits_until_it_has_enough_waits_for_somebody(self):
        machine = getattr(self, "machine", None)
        if machine is not None and not machine.has_enough and not machine.wants and not machine.is_paused:
            assert any(self.queues) or len(self.up) < len(self.queues)

    def teardown(self):
        """Left alone, everything that was promised arrives."""
        if not hasattr(self, "machine"):
            return
        for _ in range(len(self.expected) + 1):
            if not self.waiting and not self.over:
                self.ask()
            while self.waiting:
                if self.machine.is_paused:
                    self.resume()
                elif self.machine.wants:
                    self.offer()
                elif any(self.queues):
                    self.finish(0)
                else:
                    assert len(self.up) < len(self.queues), "it hangs"
                    self.arrive(0)
        assert self.over
        assert Counter(self.got) == Counter(self.expected)
        if self.in_order:
            assert self.got == self.expected


TestMachine = World.TestCase
TestMachine.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)
