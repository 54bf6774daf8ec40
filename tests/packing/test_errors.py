"""What packing refuses, at once or with the sample's name, and what it leaves out."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter

import numpy as np
import pytest

import stoker
from tests.packing.documents import Documents, Failing, all_tokens, loader, tokens_of


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"pack": 2048}, TypeError, r"pack=2048: pass stoker.Pack\(length\)"),
        ({"collate": lambda samples: samples}, ValueError, "collate= with pack="),
        ({"rotation": stoker.Rotation(2)}, ValueError, "rotation= with pack="),
        ({"batch_size": 0}, ValueError, "batch_size is 0"),
    ],
)
def test_bad_arguments_are_refused_before_anything_starts(options, error, message):
    with pytest.raises(error, match=message):
        loader(**options)


def test_nobody_knows_the_number_of_batches_and_list_and_bars_do_without():
    with loader() as packed:
        with pytest.raises(TypeError, match="the number of batches is not known with pack="):
            len(packed)
        assert list(packed)


def test_batches_are_not_numbered_so_that_nobody_can_go_to_one_or_ask_what_is_in_it():
    with loader() as packed:
        for ask in (lambda: packed.seek(0, 1), lambda: packed.skip(1), lambda: packed.indices(0, 1)):
            with pytest.raises(ValueError, match=r"\(\) of a loader with pack=: which samples are in a batch"):
                ask()


@pytest.mark.parametrize("workers", [0, stoker.Threads(2)])
def test_a_sample_that_is_replaced_leaves_its_window_as_full_as_it_was(workers):
    with loader(Failing(), on_error="replace", workers=workers) as packed:
        found = tokens_of(list(packed))
        assert packed.stats().replaced >= 10  # those that were to take a place may fail as well
    good = all_tokens(Documents(), [index for index in range(100) if index % 10 != 3])
    assert good < found
    assert found.keys() == good.keys()


@pytest.mark.parametrize("workers", [0, stoker.Threads(2)])
def test_a_sample_that_cannot_be_packed_is_an_error_with_its_index_and_window(workers):
    data = [np.arange(3)] * 20 + [np.ones((2, 2))] + [np.arange(3)] * 20
    with loader(data, shuffle=False, workers=workers) as packed, pytest.raises(stoker.CollateError) as caught:
        list(packed)
    assert "the value of sample 20 is a ndarray of shape (2, 2)" in str(caught.value)
    assert any("window 1 of epoch 0" in note for note in caught.value.__notes__)


def test_after_an_error_the_next_window_comes():
    data = Documents()
    with loader(Failing(), shuffle=False, batch_size=1) as packed:
        batches, errors = iter(packed), 0
        found = []
        while True:
            try:
                found.append(next(batches))
            except OSError:
                errors += 1
            except StopIteration:
                break
    whole = [
        window
        for window in range(7)
        if not any(index % 10 == 3 for index in range(16 * window, min(16 * window + 16, 100)))
    ]
    assert errors == 7 - len(whole)
    assert tokens_of(found) == all_tokens(
        data, [i for window in whole for i in range(16 * window, min(16 * window + 16, 100))]
    )


def test_a_sample_that_kills_its_worker_is_found_in_its_window_and_left_out():
    class Deadly(Documents):
        def __getitem__(self, index):
            if index == 37:
                os.kill(os.getpid(), signal.SIGKILL)
            return super().__getitem__(index)

    with loader(Deadly(), workers=stoker.Processes(2), on_error="skip", max_deaths=1) as packed:
        assert tokens_of(list(packed)) == all_tokens(Documents(), [index for index in range(100) if index != 37])


@pytest.mark.parametrize("workers", [0, stoker.Threads(2)])
def test_samples_that_cannot_be_read_are_left_out_and_written_down(tmp_path, workers):
    file = tmp_path / "gone.jsonl"
    with loader(Failing(), on_error="quarantine", quarantine=file, workers=workers) as packed:
        found = tokens_of(list(packed))
    assert found == all_tokens(Documents(), [index for index in range(100) if index % 10 != 3])
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert Counter(line["index"] for line in lines) >= Counter(range(3, 100, 10))


def test_a_window_of_which_nothing_can_be_read_is_left_out():
    class Gone(Documents):
        def __getitem__(self, index):
            if index < 40:
                raise OSError("gone")
            return super().__getitem__(index)

    with loader(Gone(), on_error="skip", shuffle=False) as packed:
        assert tokens_of(list(packed)) == all_tokens(Documents(), range(40, 100))
