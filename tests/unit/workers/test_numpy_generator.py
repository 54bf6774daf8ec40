"""The user's numpy.random goes on after a batch as if there had been none, in whatever state it was."""

from __future__ import annotations

import contextlib
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.workers.numpy_generator import NumpyGenerator
from stoker.workers.randomness import BorrowedGenerators, seed_generators

DRAWS = {
    "random": lambda: np.random.random(3).tolist(),
    "one normal": lambda: [np.random.standard_normal()],
    "two normals": lambda: np.random.randn(2).tolist(),
    "integers": lambda: np.random.randint(1000, size=5).tolist(),
    "many": lambda: np.random.random(700).tolist(),
    "permutation": lambda: np.random.permutation(7).tolist(),
    "seed": lambda: np.random.seed(5),
}
draws = st.lists(st.sampled_from(sorted(DRAWS)), max_size=5)


@pytest.fixture(autouse=True)
def users_own():
    generator, state = np.random.get_bit_generator(), np.random.get_state()
    yield
    np.random.set_bit_generator(generator)
    np.random.set_state(state)


def drawn(names):
    return [DRAWS[name]() for name in names]


@given(steps=st.lists(st.tuples(draws, draws), max_size=4), seed=st.integers(0, 2**32 - 1))
def test_draws_between_batches_are_those_of_a_program_without_batches(steps, seed):
    np.random.seed(seed)
    expected = [drawn(between) for between, _ in steps]
    np.random.seed(seed)
    aside, got = NumpyGenerator(), []
    for between, within in steps:
        got.append(drawn(between))
        aside.put_aside()
        np.random.seed(1)
        drawn(within)
        aside.put_back()
    assert got == expected


@given(before=draws, within=draws)
def test_draws_in_a_batch_follow_from_its_seed_alone(before, within):
    np.random.seed(7)
    expected = drawn(within)
    np.random.seed(99)
    drawn(before)
    aside = NumpyGenerator()
    aside.put_aside()
    np.random.seed(7)
    got = drawn(within)
    aside.put_back()
    assert got == expected


@pytest.mark.parametrize("generator", [np.random.PCG64, np.random.MT19937, np.random.Philox])
def test_a_bit_generator_that_the_user_has_chosen_is_the_users_again(generator):
    np.random.set_bit_generator(generator(3))
    np.random.standard_normal()
    state = np.random.get_state(legacy=False)
    expected = drawn(["one normal", "random", "one normal"])
    np.random.set_bit_generator(generator(3))
    np.random.set_state(state)
    borrowed = BorrowedGenerators()
    with borrowed.lent():
        borrowed.seed(1)
        drawn(["one normal", "many"])
    assert type(np.random.get_bit_generator()) is generator
    assert drawn(["one normal", "random", "one normal"]) == expected


def test_a_batch_has_the_same_numbers_whatever_bit_generator_the_user_has_chosen():
    seed_generators(12)
    expected = drawn(["random", "one normal"])
    np.random.set_bit_generator(np.random.PCG64(3))
    borrowed = BorrowedGenerators()
    with borrowed.lent():
        borrowed.seed(12)
        assert drawn(["random", "one normal"]) == expected


def test_what_raises_in_a_batch_leaves_the_users_numbers_as_they_were():
    np.random.seed(3)
    expected = drawn(["two normals"])
    np.random.seed(3)
    with contextlib.suppress(KeyError), BorrowedGenerators().lent():
        np.random.set_bit_generator(np.random.PCG64(1))
        raise KeyError
    assert drawn(["two normals"]) == expected


@pytest.mark.parametrize("halves", [[], ["one normal"]])
def test_an_interrupt_while_it_is_put_aside_leaves_the_users_numbers_as_they_were(halves):
    np.random.seed(3)
    expected = drawn([*halves, "one normal", "random"])[len(halves) :]
    np.random.seed(3)
    drawn(halves)
    calls = iter([mock.Mock(side_effect=KeyboardInterrupt), np.random.set_bit_generator])
    interrupted = mock.patch.object(np.random, "set_bit_generator", lambda generator: next(calls)(generator))
    with contextlib.suppress(KeyboardInterrupt), interrupted, BorrowedGenerators().lent():
        pass
    assert drawn(["one normal", "random"]) == expected
