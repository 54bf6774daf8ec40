"""Errors keep their type and traceback, and say which index and which worker.

Those that are hard to carry: ``test_awkward_errors.py``; those of arguments: ``test_arguments.py``.
"""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
import threading

import pytest

from stoker import CollateError, Inline, Loader, Processes, ShippingError, Threads
from tests.datasets import Failing, NeedsArguments, Ragged, Rows, Unmakeable


def told(error) -> str:
    return "\n".join(getattr(error, "__notes__", []))


def test_an_error_in_the_dataset_arrives_where_its_batch_would_have_come(backend):
    """Contract: errors keep their type and traceback, and say which index and which worker."""
    with Loader(Failing(40), 5, workers=backend) as loader:
        iterator = iter(loader)
        assert [int(next(iterator)[0, 0]) for _ in range(2)] == [0, 5]
        with pytest.raises(ValueError, match="thirteen") as caught:
            next(iterator)
        assert "dataset[13]" in told(caught.value)
        assert re.search(r"in worker \d+, batch 2 of epoch 0", told(caught.value))
        if isinstance(backend, Processes):
            assert "in fail" in told(caught.value)  # the worker's own frames
        assert [int(batch[0, 0]) for batch in iterator] == [15, 20, 25, 30, 35]


def test_a_failed_batch_is_not_taken_so_a_resume_tries_it_again(backend):
    with Loader(Failing(40), 5, workers=backend) as loader:
        iterator = iter(loader)
        next(iterator), next(iterator)
        with pytest.raises(ValueError, match="thirteen"):
            next(iterator)
        state = loader.state_dict()
    with Loader(Rows(40), 5, workers=backend) as mended:
        mended.load_state_dict(state)
        assert [int(batch[0, 0]) for batch in mended] == [10, 15, 20, 25, 30, 35]


@pytest.mark.parametrize(
    ("kind", "cls", "match"),
    [
        ("arguments", NeedsArguments, "code 7: bad luck"),
        ("unpicklable", ValueError, "holds a lock"),
        ("local", ValueError, "only here"),
        ("os", FileNotFoundError, "/no/such/file"),
    ],
)
def test_errors_that_are_hard_to_carry_keep_their_type(backend, kind, cls, match):
    with Loader(Failing(40, kind), 5, workers=backend) as loader:
        with pytest.raises(cls, match=match) as caught:
            list(loader)
        assert "dataset[13]" in told(caught.value)
    if kind == "arguments":
        assert caught.value.code == 7
    if kind == "os":
        assert caught.value.errno == 2


def test_stop_iteration_in_a_dataset_does_not_end_the_loop_silently(backend):
    with Loader(Failing(40, "stop"), 5, workers=backend) as loader, pytest.raises(RuntimeError, match="StopIteration"):
        list(loader)


def test_an_error_in_collate_arrives_with_the_samples(backend):
    def bad(samples):
        raise KeyError("no such key")

    with Loader(Rows(40), 5, workers=backend, collate=bad) as loader:
        with pytest.raises(KeyError, match="no such key") as caught:
            next(iter(loader))
        assert "collating samples 0 ... 4" in told(caught.value)


def test_ragged_samples_name_leaf_shapes_indices_and_remedy(backend):
    with Loader(Ragged(40), 5, workers=backend) as loader, pytest.raises(CollateError) as caught:
        next(iter(loader))
    for word in ("sample['tokens']", "(1,)", "(2,)", "sample 0", "sample 1", "collate=stoker.pad"):
        assert word in str(caught.value)


def test_a_dataset_that_cannot_be_made_says_so_once_and_with_its_own_type(backend):
    with Loader(Unmakeable, 5, workers=backend) as loader:
        for _ in range(2):
            with pytest.raises(LookupError, match="no data here") as caught:
                len(loader)
    assert "could not be made" in told(caught.value)


def test_a_dataset_of_another_length_in_each_place_is_an_error():
    class Random:
        def __len__(self):
            return int.from_bytes(__import__("os").urandom(3), "big") + 1

        def __getitem__(self, index):
            return index

    with Loader(Random, 5, workers=Processes(2)) as loader, pytest.raises(ValueError, match="same length"):
        list(zip(loader, range(20), strict=False))


def test_a_batch_that_cannot_be_pickled_is_an_error_with_the_leafs_path():
    def locked(samples):
        return {"x": threading.Lock()}

    with Loader(Rows(10), 5, workers=1, collate=locked) as loader:
        with pytest.raises(ShippingError, match=r"batch\['x'\] is a lock"):
            next(iter(loader))
    with Loader(Rows(10), 5, workers=Threads(1), collate=locked) as loader:
        assert "lock" in repr(next(iter(loader)))


def test_a_dataset_that_cannot_be_pickled_is_told_in_the_constructor():
    dataset = Rows(10)
    dataset.handle = threading.Lock()
    for start in ("nursery", "spawn"):
        with pytest.raises(ShippingError, match=r"Rows\.handle, a lock.*functools\.partial.*Threads"):
            Loader(dataset, 5, workers=Processes(2, start=start))
    for workers in (Inline(), Threads(1), Processes(1, start="fork")):
        with Loader(dataset, 5, workers=workers) as loader:
            assert len(list(loader)) == 2


def test_a_script_needs_no_guard(tmp_path):
    """A ``__main__`` script without ``if __name__ == "__main__"`` simply works, its own classes and errors included."""
    script = tmp_path / "train.py"
    script.write_text(
        textwrap.dedent("""
        import sys, stoker, numpy as np

        class Oops(Exception):
            pass

        SCALE = 2

        class Mine:
            def __len__(self):
                return 8
            def __getitem__(self, index):
                if index == 6:
                    raise Oops("six")
                return np.full(2, index * SCALE)

        print("once", flush=True)
        loader = stoker.Loader(Mine(), 2, workers=stoker.Processes(2, start=sys.argv[1]))
        try:
            for batch in loader:
                print(batch.tolist())
        except Oops as error:
            print("caught", error)
        """)
    )
    for start in ("nursery", "fork", "spawn"):
        ran = subprocess.run([sys.executable, str(script), start], capture_output=True, text=True, timeout=60)
        assert ran.returncode == 0, ran.stderr
        assert ran.stdout.split("\n") == [
            "once",
            "[[0, 0], [2, 2]]",
            "[[4, 4], [6, 6]]",
            "[[8, 8], [10, 10]]",
            "caught six",
            "",
        ]
        assert ran.stderr == ""
