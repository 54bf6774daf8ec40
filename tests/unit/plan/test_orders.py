import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.plan import Nearby, Order, Sequential, Shuffled
from stoker.plan.order import Buffered

keys = st.integers(0, 2**64 - 1)


@st.composite
def orders(draw: st.DrawFn) -> tuple[int, Order]:
    n, key = draw(st.one_of(st.integers(0, 600), st.integers(0, 12_000))), draw(keys)
    window = draw(st.one_of(st.integers(1, 60), st.integers(1, 13_000)))
    shuffled, nearby = Shuffled(n, key), Nearby(n, window, key)
    kinds: list[Order] = [Sequential(n), shuffled, nearby, Buffered(n, shuffled), Buffered(n, nearby)]
    return n, draw(st.sampled_from(kinds))


@given(orders())
def test_every_index_comes_exactly_once(case: tuple[int, Order]) -> None:
    n, order = case
    assert sorted(order.indices(0, n)) == list(range(n))


@given(orders(), st.data())
def test_a_seek_equals_a_scan(case: tuple[int, Order], data: st.DataObject) -> None:
    n, order = case
    scan = list(order.indices(0, n))
    for _ in range(5):
        start = data.draw(st.integers(0, n))
        stop = data.draw(st.integers(start, min(n, start + 700)))
        assert list(order.indices(start, stop)) == scan[start:stop]


@given(st.integers(0, 12_000), st.one_of(st.integers(1, 60), st.integers(1, 13_000)), keys)
def test_nearby_moves_no_sample_a_window_or_more(n: int, window: int, key: int) -> None:
    found = Nearby(n, window, key).indices(0, n)
    assert all(abs(index - position) < window for position, index in enumerate(found))


def test_a_window_of_one_moves_nothing() -> None:
    assert Nearby(100, 1, 7).indices(0, 100) == list(range(100))


def test_a_window_over_the_whole_epoch_is_one_block() -> None:
    assert any(abs(i - p) > 80 for p, i in enumerate(Nearby(100, 10**30, 7).indices(0, 100)))


def test_indices_are_python_ints() -> None:
    assert Sequential(9).indices(2, 5) == range(2, 5)
    for order in (
        Shuffled(5000, 1),
        Nearby(9000, 5000, 1),
        Nearby(5000, 20, 1),
        Buffered(50, Shuffled(50, 1)),
    ):
        found = order.indices(2, 50)
        assert type(found) is list
        assert {type(index) for index in found} == {int}


def test_a_caller_may_change_the_list_it_got() -> None:
    order = Buffered(1000, Shuffled(1000, 1))
    before = order.indices(0, 32)
    order.indices(0, 32).clear()
    assert order.indices(0, 32) == before


def test_keys_and_orders_differ() -> None:
    assert Shuffled(50, 1).indices(0, 50) != Shuffled(50, 2).indices(0, 50)
    assert Nearby(50, 10, 1).indices(0, 50) != Nearby(50, 10, 2).indices(0, 50)


@pytest.mark.parametrize(("start", "stop"), [(-1, 3), (4, 3), (8, 11)])
@pytest.mark.parametrize("order", [Sequential(10), Shuffled(10, 1), Nearby(10, 3, 1), Buffered(10, Shuffled(10, 1))])
def test_positions_out_of_range_are_refused(order: Order, start: int, stop: int) -> None:
    with pytest.raises(ValueError, match=f"positions {start} to {stop} are not within an epoch of 10"):
        order.indices(start, stop)


def test_a_window_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="a window of 1 or more"):
        Nearby(10, 0, 1)


@pytest.mark.parametrize("order", [lambda: Shuffled(10**9, 3), lambda: Nearby(10**9, 10**8, 3)])
def test_a_billion_samples_take_no_memory(order: Callable[[], Order]) -> None:
    order().indices(0, 1)  # NumPy imports some of itself when it is first used
    tracemalloc.start()
    try:
        assert len(order().indices(5 * 10**8, 5 * 10**8 + 256)) == 256
        assert tracemalloc.get_traced_memory()[1] < 200_000
    finally:
        tracemalloc.stop()


def test_the_orders_are_frozen() -> None:
    """If this fails, resumed runs would see other data: raise PLAN_VERSION, or undo the change."""
    assert Shuffled(10, 1).indices(0, 10) == [7, 2, 1, 8, 4, 0, 5, 6, 9, 3]
    assert Nearby(12, 4, 1).indices(0, 12) == [0, 3, 1, 2, 6, 7, 5, 4, 11, 8, 9, 10]
    assert Nearby(10**9, 10**6, 1).indices(10**8, 10**8 + 3) == [99072837, 99715183, 99448901]
