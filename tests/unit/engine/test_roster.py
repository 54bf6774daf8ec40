"""The roster, against one that goes through all workers each time."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.engine.machine import Machine
from stoker.engine.messages import Asked, Finished, Offered, Send, Sought
from stoker.engine.number_set import NumberSet
from stoker.engine.roster import Roster
from stoker.plan import Run
from tests.unit.engine.events import answer


@given(st.lists(st.integers(0, 70)), st.integers(0, 75))
def test_a_number_set_gives_its_numbers_in_order_and_the_next_one_from_anywhere(numbers, start):
    found, expected = NumberSet(), set()
    for number in numbers:
        if number in expected:
            found.remove(number)
            expected.remove(number)
        else:
            found.add(number)
            expected.add(number)
    assert list(found) == sorted(expected)
    ahead = [number for number in expected if number >= start]
    assert found.next_from(start) == min(ahead or expected, default=None)


class NaiveRoster:
    """Keeps nothing but what each worker has."""

    def __init__(self, workers: int, depth: int, is_up: bool) -> None:
        self.depth, self.turn = depth, 0
        self.tickets = [deque() for _ in range(workers)]
        self.is_up, self.stalled, self.missed = [is_up] * workers, [False] * workers, [False] * workers

    def least_busy(self) -> int | None:
        count = len(self.tickets)
        turns = [number % count for number in range(self.turn, self.turn + count)]
        free = [
            one for one in turns if len(self.tickets[one]) < self.depth and self.is_up[one] and not self.stalled[one]
        ]
        return min(free, key=lambda one: len(self.tickets[one]), default=None)

    def to_relieve(self) -> int | None:
        count = range(len(self.tickets))
        return next((number for number in count if len(self.tickets[number]) > 1 and not self.missed[number]), None)


@given(st.integers(1, 5), st.integers(1, 3), st.booleans(), st.data())
def test_the_next_ticket_goes_to_the_same_worker_as_if_all_were_looked_at(workers, depth, announced, data):
    roster, naive = Roster(workers, depth, announced=announced), NaiveRoster(workers, depth, not announced)
    for ticket in range(data.draw(st.integers(1, 40))):
        number = naive.least_busy()
        assert roster.least_busy() == number
        assert roster.to_relieve(lambda tickets: True) == naive.to_relieve()
        act = data.draw(st.sampled_from(["send", "answer", "die", "arrive", "leave", "recall", "miss"]))
        one = data.draw(st.integers(0, workers - 1))
        own = naive.tickets[one]
        if act == "send" and number is not None:
            roster.sent(number, ticket)
            naive.tickets[number].append(ticket)
            naive.turn = number + 1
        elif act == "answer" and own:
            roster.answered(one, own.popleft() if data.draw(st.booleans()) else own.pop())
            naive.stalled[one] = naive.missed[one] = False
        elif act == "die":
            assert roster.died(one) == own
            own.clear()
            naive.is_up[one], naive.stalled[one], naive.missed[one] = not announced, False, False
        elif act == "arrive":
            roster.arrived(one, "node")
            naive.is_up[one] = True
        elif act == "leave" and not own:
            roster.left(one)
            naive.is_up[one] = False
        elif act == "recall" and len(own) > 1:
            stalls = data.draw(st.booleans())
            roster.recalled(one, own.pop(), stalls=stalls)
            naive.stalled[one] = naive.stalled[one] or stalls
        elif act == "miss":
            roster.recalled(one, None, stalls=False)
            naive.missed[one] = True


def _steps_of_a_batch(workers: int, in_order: bool) -> int:
    """Lines of Stoker's code that run for a batch when all workers are busy."""
    import sys

    machine = Machine(workers=workers, window=2 * workers, in_order=in_order)
    machine.start()
    out = deque(machine.handle(Sought()))
    position = lines = 0

    def offer() -> None:
        nonlocal position
        while machine.wants:
            out.extend(machine.handle(Offered(Run(0, position, 1))))
            position += 1

    def count(frame, event, arg):
        nonlocal lines
        lines += event == "line"
        return count

    offer()
    before = sys.gettrace()
    sys.settrace(count)
    try:
        for _ in range(10):
            send = out.popleft()
            assert isinstance(send, Send)
            machine.handle(Finished(answer(send)))
            out.extend(one for one in machine.handle(Asked()) if isinstance(one, Send))
            offer()
    finally:
        sys.settrace(before)
    return lines


@pytest.mark.parametrize("in_order", [True, False])
def test_a_batch_costs_the_machine_as_much_with_a_thousand_workers_as_with_four(in_order):
    assert _steps_of_a_batch(1000, in_order) == _steps_of_a_batch(4, in_order)
