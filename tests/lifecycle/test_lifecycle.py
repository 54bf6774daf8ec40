"""Starting, ending, and everything in between. That nothing is left behind is checked after every test, by conftest."""

from __future__ import annotations

import gc
import importlib
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import psutil
import pytest

import stoker
from stoker import ClosedError, Inline, Loader, Threads
from tests.datasets import Augmented, Rows
from tests.streams import assert_same, epochs


def first(batch) -> int:
    return int(batch[0, 0])


def test_breaking_off_begins_the_next_epoch_next_time(backend):
    with Loader(Rows(40), 5, shuffle=True, workers=backend) as loader, Loader(Rows(40), 5, shuffle=True) as oracle:
        next(iter(loader))
        assert loader.epoch == 0
        got = epochs(loader, 1)
        assert loader.epoch == 2
        assert_same(got, epochs(oracle, 2)[1:])


def test_an_exception_in_the_loop_leaves_the_loader_usable(backend):
    with Loader(Rows(40), 5, workers=backend) as loader:
        with pytest.raises(ZeroDivisionError):
            [first(batch) // 0 for batch in loader]
        assert [first(batch) for batch in loader] == list(range(0, 40, 5))


def test_set_epoch_goes_there_and_back(backend):
    with Loader(Rows(40), 5, shuffle=True, workers=backend) as loader, Loader(Rows(40), 5, shuffle=True) as oracle:
        wanted = epochs(oracle, 6)
        loader.set_epoch(5)
        assert loader.epoch == 5
        assert_same(epochs(loader, 1)[0], wanted[5])
        for epoch in (2, 0, 1, 2):
            loader.set_epoch(epoch)
            assert_same(epochs(loader, 1)[0], wanted[epoch])


def test_set_epoch_in_the_common_loop_changes_nothing():
    with Loader(Rows(40), 5, shuffle=True, workers=2) as loader, Loader(Rows(40), 5, shuffle=True) as oracle:
        got = []
        for epoch in range(3):
            loader.set_epoch(epoch)
            got.extend(epochs(loader, 1))
        assert_same(got, epochs(oracle, 3))


def test_a_newer_iterator_replaces_the_older_one(backend):
    with Loader(Rows(40), 5, workers=backend) as loader:
        older = iter(loader)
        next(older)
        newer = iter(loader)
        assert first(next(newer)) == 0
        with pytest.raises(ClosedError, match="replaced"):
            next(older)
        assert len(list(newer)) == 7
        with pytest.raises(StopIteration):
            next(newer)


def test_two_loaders_at_the_same_time(backend):
    with Loader(Rows(40), 5, workers=backend) as one, Loader(Rows(40), 5, workers=backend) as two:
        pairs = [(first(a), first(b)) for a, b in zip(one, two, strict=True)]
    assert pairs == [(k, k) for k in range(0, 40, 5)]


def test_use_after_close_is_a_clear_error(backend):
    loader = Loader(Rows(40), 5, workers=backend)
    iterator = iter(loader)
    batch = next(iterator)
    loader.close()
    loader.close()
    assert first(batch) == 0  # a held batch outlives the loader
    with pytest.raises(ClosedError, match="closed"):
        next(iterator)
    with pytest.raises(ClosedError, match="make a new one"):
        iter(loader)


def test_closing_an_unstarted_loader_is_fine(backend):
    Loader(Rows(40), 5, workers=backend).close()


def test_a_loader_that_is_forgotten_ends_its_workers(backend):
    loader = Loader(Rows(40), 5, workers=backend)
    next(iter(loader))
    del loader
    gc.collect()


def test_an_unstarted_loader_pickles_and_a_started_one_says_why_not(backend):
    with pickle.loads(pickle.dumps(Loader(Augmented(20), 5, shuffle=True, workers=backend))) as copy:
        with Loader(Augmented(20), 5, shuffle=True) as oracle:
            assert_same(epochs(copy, 2), epochs(oracle, 2))
        with pytest.raises(TypeError, match="before its first use"):
            pickle.dumps(copy)


def test_the_next_epoch_is_prefetched_while_the_consumer_is_between_loops(tmp_path):
    class Telling(Rows):
        def __getitem__(self, index):
            with open(tmp_path / "asked", "ab") as file:
                file.write(b".")
            return super().__getitem__(index)

    with Loader(Telling(20), 5, workers=Threads(2), prefetch=2) as loader:
        for _ in loader:
            pass
        deadline = time.monotonic() + 10
        # 2 x 2 batches of 5 ahead; one fewer if one was taken back from a worker whose answer nobody has heard yet.
        while (tmp_path / "asked").stat().st_size < 20 + 15 and time.monotonic() < deadline:
            os.sched_yield()
        assert (tmp_path / "asked").stat().st_size >= 35


def test_inline_makes_nothing_that_was_not_asked_for():
    asked = []

    class Telling(Rows):
        def __getitem__(self, index):
            asked.append(index)
            return super().__getitem__(index)

    with Loader(Telling(20), 5, workers=Inline()) as loader:
        next(iter(loader))
        assert asked == [0, 1, 2, 3, 4]


def run(code: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60, **options
    )


@pytest.mark.parametrize("workers", ["0", "stoker.Threads(2)", "2", "stoker.Processes(2, start='fork')"])
def test_the_interpreter_exits_without_close(workers):
    ran = run(f"""
        import numpy as np, stoker
        loader = stoker.Loader(np.arange(1000), 10, workers={workers})
        iterator = iter(loader)
        print(next(iterator).tolist())
        held = next(iterator)
    """)
    assert ran.stdout == "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]\n"
    assert ran.stderr == ""
    assert ran.returncode == 0


@pytest.mark.parametrize("start", ["nursery", "fork", "spawn"])
def test_when_the_consumer_is_killed_so_are_its_workers(start):
    """SIGKILL of the consumer: no process remains."""
    code = f"""
        import time, numpy as np, psutil, stoker

        class Busy:
            def __len__(self): return 100
            def __getitem__(self, i):
                if i > 20: time.sleep(60)
                return np.zeros(1)

        loader = stoker.Loader(Busy(), 10, workers=stoker.Processes(2, start={start!r}))
        iterator = iter(loader)
        next(iterator), next(iterator)
        print(*[child.pid for child in psutil.Process().children(recursive=True)], flush=True)
        time.sleep(60)
    """
    consumer = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True)
    children = [psutil.Process(int(pid)) for pid in consumer.stdout.readline().split()]
    assert len(children) >= 2
    consumer.kill()
    consumer.wait()
    consumer.stdout.close()
    _, alive = psutil.wait_procs(children, timeout=2)
    assert not [child for child in alive if child.status() != psutil.STATUS_ZOMBIE]


def test_ctrl_c_ends_the_program_and_its_workers():
    code = """
        import time, numpy as np, stoker
        class Sleepy:
            def __len__(self): return 100
            def __getitem__(self, i):
                time.sleep(0.05)
                return np.zeros(1)
        with stoker.Loader(Sleepy(), 10, workers=4) as loader:
            for batch in loader:
                print("go", flush=True)
    """
    consumer = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    consumer.stdout.readline()
    children = psutil.Process(consumer.pid).children(recursive=True)
    began = time.monotonic()
    os.killpg(consumer.pid, signal.SIGINT)  # as a terminal does: to the whole group
    _, errors = consumer.communicate(timeout=20)
    assert consumer.returncode == -signal.SIGINT
    assert errors.count("Traceback") == 1
    assert "KeyboardInterrupt" in errors
    assert not psutil.wait_procs(children, timeout=2)[1]
    assert time.monotonic() - began < 15


@pytest.mark.filterwarnings("ignore:.*fork")  # of JAX, and of Python 3.12: it is what we want to try
def test_a_loader_in_a_forked_child_is_a_clear_error_and_harms_nobody():
    with Loader(Rows(40), 5, workers=2) as loader:
        iterator = iter(loader)
        next(iterator)
        pid = os.fork()
        if not pid:
            code = 1
            try:
                next(iterator)
            except ClosedError as error:
                code = 0 if "make a loader in each process" in str(error) else 2
            finally:
                del iterator, loader
                gc.collect()
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert len(list(iterator)) == 7


@pytest.mark.filterwarnings("ignore:.*fork")
def test_loaders_work_in_threads_and_in_daemonic_processes():
    import multiprocessing
    import threading

    got = []

    def consume():
        with Loader(Rows(40), 5, workers=2) as loader:
            got.append([first(batch) for batch in loader])

    threads = [threading.Thread(target=consume) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == [list(range(0, 40, 5))] * 3

    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    process = context.Process(target=lambda: results.put(_count()), daemon=True)
    process.start()
    process.join(30)
    assert results.get() == 8
    results.close()


def _count() -> int:
    with Loader(Rows(40), 5, workers=2) as loader:
        return len(list(loader))


def test_workers_may_start_processes_of_their_own():
    class Calling(Rows):
        def __getitem__(self, index):
            import subprocess

            return int(subprocess.check_output(["echo", str(index)]))

    with Loader(Calling(4), 2, workers=2) as loader:
        assert [batch.tolist() for batch in loader] == [[0, 1], [2, 3]]


def test_the_surroundings_of_workers_are_the_consumers(tmp_path, monkeypatch):
    class Asking(Rows):
        def __getitem__(self, index):
            return os.environ.get("MY_SETTING"), os.getcwd(), list(sys.argv)

    with Loader(Rows(2), 1, workers=1) as other:  # the nursery is running already when the surroundings change
        next(iter(other))
        monkeypatch.setenv("MY_SETTING", "on")
        monkeypatch.chdir(tmp_path)
        with Loader(Asking(2), None, workers=1) as loader:
            assert next(iter(loader)) == ("on", str(tmp_path), sys.argv)


def test_a_module_that_was_edited_is_imported_afresh(tmp_path, monkeypatch):
    """In a notebook: edit, importlib.reload, make a new loader while the old one is still open."""
    monkeypatch.syspath_prepend(tmp_path)
    source = tmp_path / "edited_dataset.py"

    def write(value: int) -> None:
        source.write_text(f"class Mine(list):\n    def __getitem__(self, i):\n        return {value}\n")
        os.utime(source, ns=(value, value))

    write(1)
    import edited_dataset

    with Loader(edited_dataset.Mine([0]), None, workers=1) as old:
        assert next(iter(old)) == 1
        write(22)
        importlib.reload(edited_dataset)
        with Loader(edited_dataset.Mine([0]), None, workers=1) as new:
            assert next(iter(new)) == 22
    sys.modules.pop("edited_dataset")


@pytest.mark.timeout(120)
def test_close_does_not_wait_for_a_long_import(tmp_path, monkeypatch):
    """The nursery is in the middle of importing the dataset's module, for ten minutes, when the consumer gives up."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "slow_to_import.py").write_text(
        "import os, time\nif os.environ.get('SLOW'):\n    time.sleep(600)\nclass Mine(list):\n    pass\n"
    )
    import slow_to_import

    def give_up(*_):
        raise TimeoutError

    monkeypatch.setenv("SLOW", "yes")
    previous = signal.signal(signal.SIGALRM, give_up)
    try:
        with Loader(slow_to_import.Mine([0]), None, workers=2) as loader:
            signal.setitimer(signal.ITIMER_REAL, 1)
            with pytest.raises(TimeoutError):
                next(iter(loader))
    finally:
        signal.signal(signal.SIGALRM, previous)
        sys.modules.pop("slow_to_import")


def test_a_memory_mapped_file_is_opened_again_and_not_copied(tmp_path):
    path = tmp_path / "data.bin"
    np.arange(100_000, dtype=np.int32).tofile(path)
    whole = np.memmap(path, np.int32, "r")

    class Part:
        def __init__(self, data):
            self.data = data

        def __len__(self):
            return len(self.data) // 10

        def __getitem__(self, index):
            with open("/proc/self/maps") as maps:
                assert "data.bin" in maps.read()
            return self.data[10 * index : 10 * index + 10]

    for data in (whole, whole[1234:], np.memmap(path, np.int32, "r", offset=8000)):
        with Loader(Part(data), 7, workers=2) as loader:
            assert np.array_equal(next(iter(loader)).ravel(), data[:70])


def test_stats_tell_who_waited_for_whom():
    class Sleepy(Rows):
        def __getitem__(self, index):
            time.sleep(0.02)  # much longer than anything else may take, also on a busy machine
            return super().__getitem__(index)

    with Loader(Sleepy(40), 5, workers=Threads(2)) as loader:
        assert loader.stats().diagnosis == "Nothing was delivered yet."
        list(loader)
        stats = loader.stats()
    assert (stats.batches, stats.samples, stats.nbytes, stats.workers) == (8, 40, 40 * 32, 2)
    assert "waited for data" in stats.diagnosis
    assert "dataset[i]" in stats.diagnosis
    assert stats.samples_per_second > 0
    with Loader(Rows(40), 5, workers=Threads(2)) as loader:
        for _ in loader:
            time.sleep(0.05)  # much longer than to hand over a batch
        assert "kept fed" in loader.stats().diagnosis


def test_inline_the_consumer_is_told_that_it_does_the_work_itself():
    with Loader(Rows(40), 5) as loader:
        list(loader)
        assert "made its batches itself" in loader.stats().diagnosis


def test_version():
    assert stoker.__version__
