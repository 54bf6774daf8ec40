"""What all agendas have in common: units have keys, names and payloads, and cursors lead to what is left."""

from __future__ import annotations

import gc
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.agenda import IndexedAgenda, ItemAgenda
from stoker.engine import Delivery
from stoker.errors import StateError
from stoker.plan import Plan
from stoker.sources import IndexedSource


def indexed(length=20, size=3):
    return IndexedAgenda(Plan(length, size), IndexedSource.of(range(length)), lambda plan: 1)


def items(found=range(7)):
    return ItemAgenda(found, seed=0, ahead=True)


AGENDAS = {"indexed": indexed, "items": items}


def offered(agenda, most):
    """The next units, as the driver asks for them."""
    agenda.seek()
    return list(islice((run for run in agenda.units.runs(lambda: 1) if run is not None), most))


def take(agenda, run):
    delivery = Delivery(agenda.units.batch(run.epoch, run.position))
    agenda.progress.cursor = agenda.progress.after(delivery)
    agenda.units.forget(delivery)


def state(agenda):
    return agenda.progress.state(agenda.progress.cursor)


@pytest.mark.parametrize("kind", AGENDAS)
@given(data=st.data())
def test_what_is_offered_is_what_the_consumer_has_not_taken(kind, data):
    agenda = AGENDAS[kind]()
    whole = offered(agenda, 7)
    left = list(whole)
    for _ in range(data.draw(st.integers(0, 6))):
        take(agenda, left.pop(data.draw(st.integers(0, len(left) - 1))))
        assert offered(agenda, len(left)) == left
    other = AGENDAS[kind]()
    other.progress.cursor = other.progress.from_state(state(agenda))
    assert offered(other, len(left)) == left


@pytest.mark.parametrize("kind", AGENDAS)
def test_the_cursor_that_comes_after_a_batch_changes_nothing_yet(kind):
    agenda = AGENDAS[kind]()
    run = offered(agenda, 1)[0]
    before = state(agenda)
    after = agenda.progress.after(Delivery(agenda.units.batch(run.epoch, run.position)))
    assert state(agenda) == before != agenda.progress.state(after)


def test_a_batch_is_named_with_its_samples_and_an_item_by_its_number():
    agenda = indexed()
    assert agenda.units.name(offered(agenda, 2)[1]) == "the batch at position 3 of epoch 0 (samples 3, 4, 5)"
    agenda = items()
    assert agenda.units.name(offered(agenda, 2)[1]) == "item 1"


def test_items_are_pulled_no_further_than_they_are_asked_for_and_kept_until_they_are_taken():
    pulled = []

    def source():
        for number in range(100):
            pulled.append(number)
            yield f"item {number}"

    agenda = items(source())
    runs = offered(agenda, 3)
    assert pulled == [0, 1, 2]
    assert [agenda.units.payload(run) for run in runs] == ["item 0", "item 1", "item 2"]
    take(agenda, runs[1])
    assert [agenda.units.payload(run) for run in offered(agenda, 3)] == ["item 0", "item 2", "item 3"]
    assert pulled == [0, 1, 2, 3]


def test_an_agenda_that_nobody_has_any_more_is_gone_at_once_and_its_items_with_it():
    """Not when the garbage collector comes: a generator may hold files."""
    ended = []

    def source():
        try:
            yield from range(9)
        finally:
            ended.append(True)

    agenda = items(source())
    offered(agenda, 2)
    gc.disable()
    try:
        del agenda
        assert ended
    finally:
        gc.enable()


def test_items_that_come_but_once_cannot_be_had_again():
    agenda = items(iter(range(9)))
    for run in offered(agenda, 4):
        take(agenda, run)
    agenda.progress.cursor = agenda.progress.go_to(0)
    with pytest.raises(StateError, match="each once"):
        agenda.seek()
