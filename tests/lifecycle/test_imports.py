"""What modules do when workers import them: no chain of processes, nothing that outlives its consumer."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys

import numpy as np
import psutil
import pytest

from tests.lifecycle.scripts import SOURCE, run, write

DATASET = """
import stoker, threading

class Numbers:
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return index

def work(item):
    return item
"""
needs_numpy_2 = pytest.mark.skipif(np.__version__ < "2", reason="NumPy 1 itself imports secrets, and finds the user's")
FRONTS = {
    "Loader": "stoker.Loader(Numbers(), 4, workers={})",
    "stream": "stoker.stream(work, range(8), workers={})",
    "factory": "stoker.Loader(Numbers, 4, workers={})",
}


@pytest.mark.parametrize("workers", ["2", 'stoker.Processes(2, start="spawn")'])
@pytest.mark.parametrize("front", ["Loader", "stream", "factory"])
def test_a_module_that_starts_a_loader_on_import_is_an_error_that_names_it(front, workers, tmp_path):
    train = f"{DATASET}print(len(list({FRONTS[front].format(workers)})))\n"
    write(tmp_path, {"train.py": train})
    code, output, errors = run(tmp_path, ["-c", "import train"])
    assert (code, output) == (1, "")
    assert "StartError" in errors
    assert f"imported the module 'train' ({tmp_path / 'train.py'}, line {len(train.splitlines())}: `print(" in errors
    assert 'under `if __name__ == "__main__":` in train.py' in errors


@pytest.mark.parametrize("start", ["nursery", "spawn"])
@pytest.mark.parametrize("workers", ["0", "stoker.Threads(1)"])
def test_a_module_may_use_a_loader_without_processes_on_import(workers, start, tmp_path):
    data = f"""{DATASET}
MEAN = sum(batch.mean() for batch in stoker.Loader(Numbers(), 4, workers={workers})) / 2
"""
    train = f"""
        import data, stoker
        for batch in stoker.Loader(data.Numbers(), 8, workers=stoker.Processes(1, start={start!r})):
            print(batch.mean() == data.MEAN)
    """
    write(tmp_path, {"data.py": data, "train.py": train})
    assert run(tmp_path, ["train.py"]) == (0, "True\n", "")


def test_nor_does_a_thread_of_the_module_start_a_chain(tmp_path):
    code = f"""{DATASET}
def start():
    print(len(list(stoker.Loader(Numbers(), 4, workers=1))))

threading.Thread(target=start).start()
"""
    write(tmp_path, {"train.py": code})
    status, output, _ = run(tmp_path, ["-c", "import train"])
    assert (status, output) == (0, "2\n")


def test_also_if_the_module_is_imported_when_a_sample_is_asked_for(tmp_path):
    data = """
        class Late:
            def __len__(self):
                return 8

            def __getitem__(self, index):
                import train
                return index
    """
    train = """
        import stoker, data
        print(len(list(stoker.Loader(data.Late(), 4, workers=1))))
    """
    write(tmp_path, {"data.py": data, "train.py": train})
    status, output, errors = run(tmp_path, ["train.py"])
    assert (status, output) == (1, "")
    assert "StartError" in errors
    assert "imported the module 'train'" in errors


def test_a_dataset_that_starts_itself_in_each_worker_comes_to_an_end(tmp_path):
    code = """
        import stoker

        class Endless:
            def __len__(self):
                return 2

            def __getitem__(self, index):
                with stoker.Loader(Endless(), 2, workers=1, prefetch=1) as loader:
                    return next(iter(loader))

        print(len(list(stoker.Loader(Endless(), 2, workers=1, prefetch=1))))
    """
    write(tmp_path, {"train.py": code})
    status, output, errors = run(tmp_path, ["train.py"])
    assert (status, output) == (1, "")
    assert "StartError: a loader was started in a worker of a worker ..., 4 deep" in errors


@needs_numpy_2
@pytest.mark.parametrize("start", ["nursery", "spawn"])
def test_a_script_may_be_called_secrets(start, tmp_path):
    """Which numpy.random imports: it must find the standard library's."""
    code = f"""
        import stoker

        class Numbers:
            def __len__(self):
                return 8

            def __getitem__(self, index):
                return index

        print(len(list(stoker.Loader(Numbers(), 4, workers=stoker.Processes(2, start={start!r})))))
    """
    write(tmp_path, {"secrets.py": code})
    assert run(tmp_path, ["secrets.py"]) == (0, "2\n", "")


@needs_numpy_2
@pytest.mark.parametrize("start", ["nursery", "spawn"])
def test_a_dataset_may_have_a_module_that_is_called_as_one_of_the_standard_library(start, tmp_path):
    """If that works in the training process, it works in workers: each gets the file that it would get there."""
    data = """
        from secrets import TOKEN

        class Secret:
            def __len__(self):
                return 8

            def __getitem__(self, index):
                return f"{TOKEN}{index}"
    """
    train = f"""
        import data, stoker
        for batch in stoker.Loader(data.Secret(), 8, workers=stoker.Processes(1, start={start!r})):
            print(batch[7])
    """
    write(tmp_path, {"secrets.py": "TOKEN = 'mine'\n", "data.py": data, "train.py": train})
    assert run(tmp_path, ["train.py"]) == (0, "mine7\n", "")


@pytest.mark.parametrize(
    ("name", "start"), [("random", "fork"), ("struct", "nursery"), ("socket", "nursery"), ("queue", "nursery")]
)
def test_a_file_in_the_place_of_what_stoker_needs_is_an_error_that_names_it(name, start, tmp_path):
    code = f"import stoker\nprint(len(list(stoker.Loader([1, 2], workers=stoker.Processes(1, start={start!r})))))\n"
    write(tmp_path, {f"{name}.py": "MINE = 1\n", "train.py": code})
    status, output, errors = run(tmp_path, ["train.py"])
    assert (status, output) == (1, "")
    assert f"{tmp_path / name}.py was imported in the place of the module of that name" in errors


SLOW = """
import os, time, ctypes

if "STOKER_TEST_SLOW" in os.environ:
    os.write(1, b"importing\\n")
    IMPORT

class Numbers:
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return index
"""
CONSUMER = """
import os, slow, stoker
os.environ["STOKER_TEST_SLOW"] = "1"
next(iter(stoker.Loader(slow.Numbers(), 4, workers=stoker.Processes(2, start=START))))
"""


@pytest.mark.parametrize("holding", ["time.sleep(600)", "ctypes.PyDLL(None).sleep(600)"], ids=["idle", "with the GIL"])
def test_the_nursery_ends_with_its_consumer_also_in_the_middle_of_an_import(holding, tmp_path):
    write(tmp_path, {"slow.py": SLOW.replace("IMPORT", holding), "train.py": CONSUMER.replace("START", '"nursery"')})
    process = subprocess.Popen(
        [sys.executable, "train.py"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        start_new_session=True,
        env=os.environ | {"PYTHONPATH": SOURCE},
    )
    with process:
        try:
            assert process.stdout.readline() == b"importing\n"
            (nursery,) = psutil.Process(process.pid).children()
            watched = os.pidfd_open(nursery.pid)
            process.kill()
            poll = select.poll()
            poll.register(watched, select.POLLIN)
            assert poll.poll(2000), "the nursery has outlived its consumer"
            os.close(watched)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def test_a_nursery_that_was_started_in_a_thread_outlives_the_thread(tmp_path):
    code = """
        import threading, stoker

        class Numbers:
            def __len__(self):
                return 8

            def __getitem__(self, index):
                return index

        loader = stoker.Loader(Numbers(), 4, workers=2)
        thread = threading.Thread(target=loader.warm_up)
        thread.start()
        thread.join()
        pids = loader.worker_pids
        print(len(list(loader)), loader.worker_pids == pids)
    """
    write(tmp_path, {"train.py": code})
    assert run(tmp_path, ["train.py"]) == (0, "2 True\n", "")


def test_a_worker_that_ends_while_its_own_loader_starts_says_nothing(tmp_path):
    code = """
        import stoker

        class Inner:
            def __len__(self):
                return 4

            def __getitem__(self, index):
                return index

        class Outer:
            def __len__(self):
                return 4

            def __getitem__(self, index):
                with stoker.Loader(Inner(), 2, workers=1) as loader:
                    return sum(int(batch.sum()) for batch in loader)

        with stoker.Loader(Outer(), 1, workers=2) as loader:
            print([int(batch[0]) for batch in loader])
    """
    write(tmp_path, {"train.py": code})
    assert run(tmp_path, ["train.py"]) == (0, "[6, 6, 6, 6]\n", "")
