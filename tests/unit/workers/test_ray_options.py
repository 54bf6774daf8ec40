"""``stoker.Ray``: bad arguments are found at once, and say what to pass instead. No Ray is needed for that."""

from __future__ import annotations

import pickle

import pytest

from stoker import Ray


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"n": 0}, r"Ray\(n=0\): pass the number of actors"),
        ({"n": "two"}, "pass the number of actors"),
        ({"n": True}, "pass the number of actors"),
        ({"local": -1}, "pass a number of processes, 0 or more"),
        ({"address": 6379}, "pass .*host:port"),
        ({"address": "head"}, "pass .*host:port"),
        ({"address": ""}, "pass .*host:port"),
        ({"num_cpus": -1}, "pass a number of CPUs"),
        ({"num_cpus": "1"}, "pass a number of CPUs"),
        ({"num_cpus": float("nan")}, "pass a number of CPUs"),
        ({"resources": ["gpu"]}, "pass a dict"),
        ({"resources": {"CPU": 1}}, "Pass num_cpus for CPUs"),
        ({"resources": {"disk": -1}}, "pass a number, 0 or more"),
        ({"placement": "scatter"}, "spread.*pack.*placement group"),
        ({"placement": 3}, "spread.*pack.*placement group"),
        ({"runtime_env": "env"}, "pass a dict"),
        ({"autoscale": 4}, r"pass \(least, most\)"),
        ({"autoscale": (1, 0)}, "two numbers of actors"),
        ({"autoscale": (3, 8)}, "least <= n <= most"),
        ({"start_timeout": -1}, "pass a number of seconds"),
        ({"start_timeout": float("inf")}, "pass a number of seconds"),
    ],
)
def test_bad_arguments_say_what_to_pass(arguments, said):
    with pytest.raises((TypeError, ValueError), match=said):
        Ray(**{"n": 2, **arguments})


def test_it_prints_what_was_asked_for_and_pickles():
    workers = Ray(2, local=1, resources={"disk": 1}, autoscale=[1, 4])
    assert repr(workers) == "Ray(n=2, resources={'disk': 1}, local=1, autoscale=(1, 4))"
    assert pickle.loads(pickle.dumps(workers)) == workers
    assert workers.count == 5
    assert hash(Ray(2)) == hash(Ray(2))


def test_it_shows_no_passwords():
    workers = Ray(2, runtime_env={"env_vars": {"AWS_SECRET_ACCESS_KEY": "hunter2hunter2", "MODE": "fast"}})
    assert "hunter2" not in repr(workers)
    assert "fast" in repr(workers)
