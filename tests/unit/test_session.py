"""A session, put together of its real parts, without workers: what it says of itself, and what it refuses."""

from __future__ import annotations

import pickle

import pytest

from stoker.errors import ClosedError, StateError
from stoker.indexed_session import indexed_session
from stoker.observe import ErrorPolicy
from stoker.plan import Plan
from stoker.session import Session
from stoker.settings import Settings
from stoker.sources import IndexedSource
from stoker.stores import Keeping

SETTINGS = {
    "workers": 0,
    "prefetch": 2,
    "in_order": True,
    "timeout": None,
    "max_deaths": 3,
    "policy": ErrorPolicy("raise"),
    "retry": 0,
    "to": None,
    "device": None,
    "to_device": None,
    "max_on_device": 2,
    "observe": True,
    "watch": False,
    "progress": False,
}


def session_of(length: int = 10, size: int = 4, shard: tuple[int, int] = (0, 1)) -> Session:
    source, plan = IndexedSource.of(range(length)), Plan(length, size, shard=shard)
    return indexed_session(source, plan, None, None, Keeping(None, None), Settings.checked(**SETTINGS))


@pytest.fixture
def session():
    session = session_of()
    yield session
    session.close()


def take(session: Session) -> list[int] | None:
    delivery = session.offer()
    if delivery is None:
        return None
    delivery.is_taken = True
    return delivery.data.tolist()


def test_an_epoch_ends_with_none_and_the_next_one_begins_when_it_is_said_so(session):
    session.begin_epoch()
    assert [take(session) for _ in range(4)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9], None]
    assert session.offer() is None
    session.end_epoch()
    assert (session.epoch, take(session)) == (1, [0, 1, 2, 3])


def test_a_state_leads_another_session_to_the_next_batch(session):
    take(session)
    session.offer()  # which is not taken
    other = session_of()
    other.load(session.state())
    assert take(other) == [4, 5, 6, 7]
    other.close()


def test_steps_lead_to_any_batch(session):
    session.steps.seek(3, 1)
    assert (session.epoch, take(session)) == (3, [4, 5, 6, 7])
    session.steps.skip(2)
    assert (session.epoch, take(session)) == (4, [4, 5, 6, 7])
    assert session.steps.indices(0, 2) == [8, 9]
    with pytest.raises(IndexError):
        session.steps.seek(0, 3)


def test_it_is_fresh_until_it_starts_and_only_then_may_be_another_shard(session):
    assert session.is_fresh
    session.set_shard((1, 2))
    assert (session.shard, take(session)) == ((1, 2), [4, 5, 6, 7])
    assert not session.is_fresh


def test_another_shard_goes_on_from_where_the_consumer_is(session):
    session.steps.seek(0, 1)
    session.set_shard((1, 2))
    assert take(session) == [7, 8, 9]


def test_the_state_of_something_else_is_refused_and_nothing_changes(session):
    take(session)
    with pytest.raises(StateError):
        session.load(session_of(size=5).state())
    assert take(session) == [4, 5, 6, 7]


def test_it_says_where_it_is_in_its_life_and_is_closed_once(session):
    assert session.phase().endswith("not started")
    take(session)
    assert session.phase().endswith("running")
    session.close()
    session.close()
    assert session.phase().endswith("closed")
    with pytest.raises(ClosedError):
        session.offer()
    assert session.stats().batches == 1


def test_it_is_pickled_before_its_first_use_and_refuses_after_that(session):
    other = pickle.loads(pickle.dumps(session))
    assert take(other) == take(session)
    other.close()
    with pytest.raises(TypeError, match="a loader that has been started cannot be pickled"):
        pickle.dumps(session)


def test_weights_are_for_mixtures_alone(session):
    assert not session.mixing.is_endless
    with pytest.raises(TypeError, match=r"make the loader of a stoker\.Mix"):
        session.mixing.set_weights({"web": 1}, None)
