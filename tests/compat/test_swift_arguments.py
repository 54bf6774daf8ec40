"""SwiftLoader's arguments: each is checked in the constructor, and with ``validate`` so is what they do."""

from __future__ import annotations

import os
import time

import numpy as np
import pytest

from stoker.compat.swift_loader import SwiftLoader
from stoker.compat.swift_loader.options import Options
from tests.compat.numbered import Broken, Numbers, Unmakeable, from_json, make, read, to_json


class Shapeless:
    def __len__(self) -> int:
        return 3


def told(**options) -> Options:
    options.setdefault("seed", 1)
    mandatory = {"dataset_class": Numbers, "dataset_kwargs": {"n": 8}, "batch_size": 4, "nb_consumer": 2,
                 "worker_per_consumer": 3, "shuffle": True}  # fmt: skip
    return Options.of(**mandatory | options)


@pytest.mark.parametrize("name", ["data_queue_size", "message_queue_size", "nearby_shuffle", "max_nb_batch_on_device",
                                  "max_buffer_size", "batch_size", "nb_consumer", "worker_per_consumer"])  # fmt: skip
def test_counts_are_whole_numbers_of_one_or_more(name):
    assert told(**{name: np.int64(1)}) == told(**{name: 1})
    for wrong, kind in ((0, ValueError), (-3, ValueError), (2.5, TypeError), ("4", TypeError), (True, TypeError)):
        with pytest.raises(kind, match=f"{name}={wrong!r}: pass a whole number of 1 or more"):
            told(**{name: wrong})


@pytest.mark.parametrize("name", ["shuffle", "benchmark", "validate", "multithread"])
def test_flags_are_true_or_false(name):
    told(**{name: False})
    with pytest.raises(TypeError, match=f"{name}=1: pass True or False"):
        told(**{name: 1})


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"dataset_class": None}, TypeError, "dataset_class=None cannot be called"),
        ({"dataset_class": Numbers(3)}, TypeError, "cannot be called"),
        ({"dataset_kwargs": [1]}, TypeError, "pass a dict"),
        ({"dataset_kwargs": {"m": 3}}, TypeError, "unexpected keyword argument 'm'"),
        ({"collate_fn": "stack"}, TypeError, "collate_fn='stack' cannot be called"),
        ({"batch_encoder": to_json}, ValueError, "batch_decoder is missing"),
        ({"batch_decoder": from_json}, ValueError, "batch_encoder is missing"),
        ({"benchmark_file": 3}, TypeError, "benchmark_file=3"),
        ({"logger": 3}, TypeError, "logger=3: pass a prefix"),
        ({"logger": {"file": "x"}}, ValueError, "unknown key 'file': it may have 'path', 'stdout', 'level'"),
        ({"logger": {"path": 3}}, TypeError, "path=3"),
        ({"logger": {"stdout": "yes"}}, TypeError, "stdout='yes'"),
        ({"logger": {"level": "LOUD"}}, ValueError, "level='LOUD': pass one of .*INFO"),
        ({"seed": "x"}, TypeError, "seed='x': pass a whole number"),
        ({"seed": 1, "seed_numer": 2}, ValueError, "seed=1 and seed_numer=2 are one and the same"),
        ({"colate_fn": len}, TypeError, "no argument 'colate_fn': the nearest that it has is 'collate_fn'"),
        ({"num_workers": 3}, TypeError, "no argument 'num_workers': the nearest"),
        ({"nearby_shufle": 3}, TypeError, "the nearest that it has is 'nearby_shuffle'"),
    ],
)
def test_a_wrong_argument_is_an_error_of_the_constructor_that_says_what_to_write(options, kind, words):
    arguments = {"dataset_class": Numbers, "dataset_kwargs": {"n": 8}} | options
    with pytest.raises(kind, match=words):
        SwiftLoader(arguments.pop("dataset_class"), arguments.pop("dataset_kwargs"), 4, 2, 3, **arguments)


@pytest.mark.parametrize("name", ["seed", "seed_number", "seed_numer"])
def test_the_seed_has_three_names(name):
    assert told(**{"seed": None, name: 7}).seed == 7
    assert told(**{"seed": None, "seed_number": 7, name: 7}).seed == 7


def test_by_default_the_seed_is_the_clock_in_milliseconds():
    before = int(time.time() * 1000)
    assert before <= told(seed=None).seed <= int(time.time() * 1000)


@pytest.mark.parametrize(
    ("options", "prefetch"),
    [({}, 3), ({"data_queue_size": 2}, 1), ({"data_queue_size": 9, "worker_per_consumer": 2}, 4)],
)
def test_the_queue_is_divided_among_the_workers(options, prefetch):
    assert told(**options).prefetch == prefetch


def test_the_defaults_are_those_of_its_document():
    options = told()
    assert (options.data_queue_size, options.message_queue_size, options.max_nb_batch_on_device) == (10, 10, 1)
    assert (options.benchmark, options.validate, options.multithread) == (True, True, True)
    assert (options.collate_fn, options.logger, options.benchmark_file) == (None, None, None)
    assert (options.batch_encoder, options.batch_decoder) == (None, None)
    assert (options.window, told(shuffle=False).window) == (20, False)


def test_arguments_without_a_counterpart_change_nothing():
    with make(message_queue_size=1, multithread=False, max_buffer_size=1, data_queue_size=1) as loader:
        loader.start(0)
        assert read(loader) == [[[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]]


def no_collation(samples):
    raise ArithmeticError("cannot be collated")


def no_decoding(encoded):
    raise EOFError("cannot be decoded")


def started_and_read(loader):
    loader.start(0)
    return read(loader)


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"n": 0}, ValueError, "the Numbers that dataset_class made is empty"),
        ({"n": 3, "dataset_class": Broken}, LookupError, "the last one is missing"),
        ({"dataset_class": lambda n: Unmakeable()}, OSError, "no such disk"),
        ({"dataset_class": lambda n: iter(range(n))}, TypeError, "has no __getitem__"),
        ({"dataset_class": lambda n: Shapeless()}, TypeError, "Shapeless that has no __getitem__"),
        ({"collate_fn": no_collation}, ArithmeticError, "cannot be collated"),
        ({"batch_encoder": list, "batch_decoder": from_json}, TypeError, "batch_encoder returned a list: it must"),
        ({"batch_encoder": bytes, "batch_decoder": no_decoding}, EOFError, "cannot be decoded"),
    ],
)
def test_validation_raises_the_error_itself_and_without_it_the_consumer_gets_it(options, kind, words):
    with pytest.raises(kind, match=words):
        make(**options)
    with make(**options, validate=False) as loader, pytest.raises(kind, match=words):
        started_and_read(loader)


def test_validation_looks_at_one_batch_at_most(tmp_path):
    class Telling(Numbers):
        def __getitem__(self, index):
            with open(tmp_path / "asked", "a") as file:
                file.write(f"{os.getpid()} {index}\n")
            return index

    make(10, 3, consumers=5, dataset_class=Telling, shuffle=True)
    make(2, 3, consumers=5, dataset_class=Telling)
    asked = (tmp_path / "asked").read_text().split("\n")[:-1]
    assert asked == [f"{os.getpid()} {index}" for index in (0, 1, 2, 0, 1)]


def test_without_validation_nothing_is_made():
    SwiftLoader(Unmakeable, {}, 3, 1, 1, validate=False)
