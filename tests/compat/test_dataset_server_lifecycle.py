"""dataset_server's workers: what they see, how they get ahead, and that nothing is left of them."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Collection

import psutil
import pytest

from stoker import ClosedError
from tests.compat.served import (
    Broken,
    Endless,
    Noisy,
    Timed,
    Told,
    Unmakeable,
    Visible,
    make,
    pairs,
    read,
    told,
)

# gpu_indices


def seen(loader, workers: int, beside: Collection[int] = ()) -> dict[int, tuple[str, str]]:
    """pid -> the GPUs that it saw at import, and later: of so many workers, of which one may start late."""
    found = {}
    while len(found) < workers:
        for pids, at_import, now in loader:
            of_each = zip(pids.tolist(), at_import, now, strict=True)
            found |= {pid: (before, after) for pid, before, after in of_each if pid not in beside}
    return found


@pytest.mark.parametrize("indices", [[0, 1, 2], (5, 5, 3), [7]])
def test_each_worker_sees_its_gpu_before_the_dataset_is_imported(indices, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "of the consumer")
    with make(40, 2, len(indices), Visible, gpu_indices=indices) as loader:
        found = seen(loader, len(indices))
    assert sorted(found.values()) == sorted((str(index), str(index)) for index in indices)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "of the consumer"


def test_a_worker_that_is_replaced_sees_the_same():
    with make(40, 2, 1, Visible, gpu_indices=[4]) as loader:
        (pid,) = seen(loader, 1)
        os.kill(pid, signal.SIGKILL)
        assert list(seen(loader, 1, beside=[pid]).values()) == [("4", "4")]


def test_without_gpu_indices_they_see_what_the_consumer_sees(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "of the consumer")
    with make(40, 2, 1, Visible) as loader:
        assert list(seen(loader, 1).values()) == [("of the consumer", "of the consumer")]


def test_the_stream_is_that_of_other_workers():
    with (
        make(40, 3, 2, Noisy, shuffle=True, gpu_indices=[0, 1]) as loader,
        make(40, 3, 1, Noisy, shuffle=True) as other,
    ):
        assert pairs(loader, 2) == pairs(other, 2)


# prefetch_time, max_queue_size


@pytest.mark.parametrize("options", [{}, {"use_threading": True}], ids=str)
def test_the_constructor_waits_while_workers_prefetch(options):
    began = time.monotonic()
    with make(40, 3, 1, Timed, prefetch_time=1, max_queue_size=6, **options) as loader:
        returned = time.monotonic()
        assert returned - began >= 1
        batches = [batch.tolist() for batch in loader]
    assert [len(batch) for batch in batches] == [3] * 13 + [1]
    assert max(batches[5]) < returned < min(batches[-1])  # six were ready, and more than that was not made


def test_nothing_of_the_first_epoch_is_lost():
    with make(40, 3, 2, Noisy, shuffle=True, prefetch_time=0.1) as loader, make(40, 3, 2, Noisy, shuffle=True) as other:
        assert pairs(loader, 2) == pairs(other, 2)


def test_no_more_batches_are_made_ahead_than_the_queues_hold(tmp_path):
    options = {"params": {"file": str(tmp_path / "told")}, "max_queue_size": 2, "prefetch_time": 1}
    with make(40, 3, 2, Told, **options):
        assert sorted(index for index, _ in told(tmp_path / "told")) == list(range(2 * 2 * 3))


def test_the_time_is_up_though_nothing_is_ready():
    with make(40, 3, 1, Endless, prefetch_time=0.2):
        pass


def test_a_constructor_that_is_interrupted_leaves_nothing(monkeypatch):
    def interrupted(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr("stoker.compat.dataset_server.loader.sleep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        make(40, 3, 2, prefetch_time=60, max_queue_size=1)


def test_nor_does_one_whose_dataset_cannot_be_made():
    with pytest.raises(OSError, match="no such disk"):
        make(40, 3, 2, Unmakeable)


def test_an_empty_dataset_has_no_batches():
    with make(0, 3, 2, prefetch_time=0.1) as loader:
        assert len(loader) == 0
        assert list(loader) == []


# use_threading


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("stoker")]


def test_a_thread_talks_to_the_workers_if_it_is_asked_for():
    with make(40, 3, 2) as loader:
        next(iter(loader))
        assert threads() == []
    with make(40, 3, 2, use_threading=True) as loader:
        next(iter(loader))
        assert len(threads()) == 1
    assert threads() == []


@pytest.mark.parametrize("options", [{}, {"shuffle": True, "prefetch_time": 0.1}, {"max_queue_size": 1}], ids=str)
def test_the_stream_is_the_same_as_without_it(options):
    with make(40, 3, 2, Noisy, use_threading=True, **options) as loader, make(40, 3, 2, Noisy, **options) as other:
        assert pairs(loader, 3) == pairs(other, 3)


# The end


@pytest.mark.parametrize("options", [{}, {"use_threading": True}, {"max_minibatch_length": 100}], ids=str)
class TestEnds:
    def test_breaking_off_begins_the_next_epoch_next_time(self, options):
        with make(40, 3, 2, shuffle=True, **options) as loader, make(40, 3, 2, shuffle=True) as whole:
            next(iter(loader))
            assert read(loader, 2) == read(whole, 3)[1:]

    def test_it_may_be_closed_twice_and_then_says_so(self, options):
        loader = make(10, 3, 2, **options)
        iterator = iter(loader)
        batch = next(iterator)
        loader.close()
        loader.close()
        assert batch.tolist() == [0, 1, 2]
        for use in (lambda: next(iterator), lambda: list(loader)):
            with pytest.raises(ClosedError, match="closed"):
                use()

    def test_one_that_was_never_used_is_closed(self, options):
        make(10, 3, 2, **options).close()
        with make(10, 3, 2, **options):
            pass

    def test_a_forgotten_one_leaves_nothing(self, options):
        loader = make(10, 3, 2, **options)
        next(iter(loader))
        del loader
        gc.collect()  # that nothing is left is checked after every test

    def test_an_exception_in_the_loop_leaves_it_usable(self, options):
        with make(10, 3, 2, **options) as loader:
            with pytest.raises(ZeroDivisionError):
                [len(batch) // 0 for batch in loader]
            assert len(read(loader)[0]) == 4

    def test_an_error_leaves_it_usable(self, options):
        with make(9, 3, 2, Broken, **options) as loader:
            for _ in range(2):
                with pytest.raises(LookupError):
                    list(loader)

    def test_the_interpreter_ends_with_an_open_one(self, options):
        script = (
            "import psutil, numpy as np\n"
            "from stoker.compat.dataset_server import DataLoader\n"
            f"loader = DataLoader(np.arange, {{'stop': 100}}, 3, 2, **{options!r})\n"
            "next(iter(loader))\n"
            "print(*[child.pid for child in psutil.Process().children(recursive=True)])\n"
        )
        ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
        assert (ran.returncode, ran.stderr) == (0, "")
        processes = [int(pid) for pid in ran.stdout.split()]
        assert len(processes) >= 2
        assert [pid for pid in processes if psutil.pid_exists(pid)] == []
