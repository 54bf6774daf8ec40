"""``Threads``: what makes a dataset makes one in each thread, for that thread, and it ends there."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from stoker import Inline, Loader, Threads
from tests.workers.surroundings import Connected


@pytest.fixture(autouse=True)
def ended():
    Connected.ended_in.clear()
    return Connected.ended_in


@pytest.mark.parametrize(
    "make", [Connected, partial(Connected, 40), lambda: Connected()], ids=["class", "partial", "λ"]
)
@pytest.mark.parametrize("workers", [Threads(1), Threads(3), Inline()], ids=repr)
def test_a_factory_is_called_in_each_thread(make, workers, ended):
    with Loader(make, 4, workers=workers) as loader:
        assert len(loader) == 10
        assert [row for batch in loader for row in batch.tolist()] == list(range(40))
    assert 1 <= len(ended) <= workers.n
    assert all(made_in == ended_in for made_in, ended_in in ended)
    assert len({made_in for made_in, _ in ended}) == len(ended)


def test_its_length_is_asked_there_too_and_its_errors_are_raised():
    def fail():
        raise LookupError("no data here")

    with Loader(fail, 4, workers=Threads(2)) as loader:
        for _ in range(2):
            with pytest.raises(LookupError, match="no data here") as caught:
                len(loader)
    assert "could not be made" in "\n".join(caught.value.__notes__)


def test_one_that_hangs_while_it_is_made_is_given_up(monkeypatch, caplog):
    monkeypatch.setattr("stoker.engine.deadlines._MAKING_S", 0.05)
    tries, goes_on = [], threading.Event()

    def make():
        tries.append(1)
        if len(tries) == 1:
            goes_on.wait(30)
        return list(range(8))

    with Loader(make, 4, workers=Threads(1), timeout=0.01) as loader:
        assert len(loader) == 2
        assert len(list(loader)) == 2
        assert len(tries) == 2
    goes_on.set()
    for thread in threading.enumerate():
        if thread.name.startswith("stoker-worker"):
            thread.join(30)  # the one that was given up
    assert "a timeout" in caplog.text
