"""The state of ``random`` comes back as it was, whatever was drawn or seeded meanwhile."""

from __future__ import annotations

import random

import pytest

from stoker.workers import python_generator
from stoker.workers.python_generator import PythonGenerator


@pytest.fixture(params=["in memory", "as a tuple"])
def generator(request, monkeypatch):
    if request.param == "as a tuple":
        monkeypatch.setattr(python_generator, "_memory_of", lambda _: None)
    before = random.getstate()
    yield PythonGenerator()
    random.setstate(before)


def drawn():
    return [random.random(), random.gauss(0, 1), random.getrandbits(70), random.sample(range(100), 5)]


@pytest.mark.parametrize("draws", [0, 1, 623, 624, 700])
def test_the_user_draws_what_would_have_been_drawn(generator, draws):
    random.seed(draws)
    for _ in range(draws):
        random.random()
    expected, _ = drawn(), random.seed(draws)
    for _ in range(draws):
        random.random()
    state = random.getstate()
    generator.put_aside()
    random.seed(5)
    drawn()
    generator.put_back()
    assert random.getstate() == state
    assert drawn() == expected


def test_the_second_half_of_a_pair_of_normal_numbers_comes_back(generator):
    random.seed(1)
    expected = [random.gauss(0, 1), random.gauss(0, 1)]
    random.seed(1)
    found = [random.gauss(0, 1)]
    generator.put_aside()
    random.seed(2)
    generator.put_back()
    assert [*found, random.gauss(0, 1)] == expected


def test_it_may_be_used_again_and_put_back_without_having_been_put_aside(generator):
    generator.put_back()
    for seed in range(3):
        random.seed(seed)
        state = random.getstate()
        generator.put_aside()
        random.random()
        generator.put_back()
        generator.put_back()
        assert random.getstate() == state


def test_where_the_functions_are_no_methods_of_the_hidden_generator_their_state_is_kept(generator, monkeypatch):
    other = random.Random(3)
    monkeypatch.setattr(random, "getstate", lambda: other.getstate())
    monkeypatch.setattr(random, "setstate", lambda state: other.setstate(state))
    state = other.getstate()
    generator.put_aside()
    other.random()
    generator.put_back()
    assert other.getstate() == state
