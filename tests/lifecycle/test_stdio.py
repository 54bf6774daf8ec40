"""Programs whose standard streams are closed: whatever a dataset writes there, it does not land in a batch."""

from __future__ import annotations

import pytest

from tests.lifecycle.scripts import run, write

WORKERS = [*[f"Processes(2, start={start!r})" for start in ("nursery", "fork", "spawn")], "Threads(2)", "Inline()"]

NOISY = """
import os, sys, numpy as np, stoker
from stoker import Inline, Processes, Threads
BEFORE

class Noisy:
    def __len__(self):
        return 64

    def __getitem__(self, index):
        for fd in (0, 1, 2):
            try:
                os.write(fd, b"noise" * 20)
            except OSError:
                pass
        try:
            print("noise" * 20, flush=True)
            print("noise" * 20, file=sys.stderr)
        except (OSError, ValueError):
            pass
        return np.full(1000, index)

with stoker.Loader(Noisy(), 4, workers=WORKERS) as loader:
    sound = all((batch == batch[:, :1]).all() for _ in range(3) for batch in loader)
    sound = sound and sorted(int(k) for batch in loader for k in batch[:, 0]) == list(range(64))
with open("told", "w") as file:
    file.write(str(sound))
BYE
"""


@pytest.mark.parametrize(
    ("closed", "workers"),
    [*[("2>&-", workers) for workers in WORKERS], *[("<&- 1>&- 2>&-", workers) for workers in WORKERS]]
    + [(one, "Processes(2, start='spawn')") for one in ("1>&-", "<&-")],
)
def test_batches_stay_sound_without(closed, workers, tmp_path):
    write(tmp_path, {"train.py": NOISY.replace("WORKERS", workers).replace("BEFORE", "").replace("BYE", "os._exit(0)")})
    status, _, errors = run(tmp_path, ["train.py"], redirections=closed)
    assert (tmp_path / "told").read_text() == "True"
    assert status == 0
    assert "Traceback" not in errors


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("before", ["for fd in (0, 1, 2): os.close(fd)", "sys.stdout.close(); sys.stderr.close()"])
def test_batches_stay_sound_in_a_program_that_closes_them_itself(before, workers, tmp_path):
    code = NOISY.replace("WORKERS", workers).replace("BEFORE", before).replace("BYE", "os._exit(0)")
    write(tmp_path, {"train.py": code})
    status, _, errors = run(tmp_path, ["train.py"])
    assert (tmp_path / "told").read_text() == "True"
    assert status == 0
    assert "Traceback" not in errors


HELD = """
import os, stoker
from stoker import Inline, Processes, Threads

def own():
    found = {fd: f"/proc/self/fd/{fd}" for fd in range(3) if os.path.exists(f"/proc/self/fd/{fd}")}
    return {fd for fd, link in found.items() if "/libffi" not in os.readlink(link)}  # which newer ones keep open

before = own()
with stoker.Loader(list(range(8)), 2, workers=WORKERS, rotation=stoker.Rotation(2, MEDIUM)) as loader:
    for _ in range(2):  # until all threads have opened what they need: a new file has such a number for a moment
        list(loader)
    during = own()
with open("told", "w") as file:
    file.write(str((before, during)))
os._exit(0)
"""


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("medium", ["memory", "disk"])
def test_no_descriptor_of_ours_is_a_standard_one(workers, medium, tmp_path):
    place = "medium='memory'" if medium == "memory" else f"medium='disk', path={str(tmp_path)!r}"
    write(tmp_path, {"train.py": HELD.replace("WORKERS", workers).replace("MEDIUM", place)})
    status, _, _ = run(tmp_path, ["train.py"], redirections="<&- 1>&- 2>&-")
    assert status == 0
    assert (tmp_path / "told").read_text() == "(set(), set())"


def test_a_reader_that_has_gone_away_is_no_traceback_of_a_worker(tmp_path):
    code = """
        import os, signal, stoker

        class Noisy:
            def __len__(self):
                return 8

            def __getitem__(self, index):
                print("noise")
                return index

        reading, writing = os.pipe()
        os.dup2(writing, 1)
        os.close(writing)
        os.close(reading)
        for start in ("nursery", "fork", "spawn"):
            with stoker.Loader(Noisy(), 2, workers=stoker.Processes(1, start=start)) as loader:
                list(loader)
        os._exit(0)
    """
    write(tmp_path, {"train.py": code})
    status, _, errors = run(tmp_path, ["train.py"])
    assert (status, errors) == (0, "")


PRINTED_AND_FORKED = """
import stoker, talkative
from stoker import Processes

print("before the workers")
with stoker.Loader(talkative.Rows(), 2, workers=WORKERS) as loader:
    print(len(list(loader)), "batches")
"""
TALKATIVE = """
print("imported")


class Rows:
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return index
"""


@pytest.mark.parametrize(("start", "importers"), [("nursery", 2), ("fork", 1), ("spawn", 4)])
def test_what_was_printed_before_a_worker_was_forked_is_printed_once(start, importers, tmp_path):
    code = PRINTED_AND_FORKED.replace("WORKERS", f"Processes(3, start={start!r})")
    write(tmp_path, {"train.py": code, "talkative.py": TALKATIVE})
    status, output, errors = run(tmp_path, ["train.py"])
    assert (status, errors) == (0, "")
    assert output.count("before the workers") == 1
    assert output.count("imported") == importers
    assert output.count("4 batches") == 1
