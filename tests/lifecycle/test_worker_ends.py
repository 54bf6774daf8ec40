"""A worker that ends in order ends what multiprocessing began in it, as multiprocessing's own processes do."""

from __future__ import annotations

import pytest

from tests.lifecycle.scripts import run, write

SCRIPT = """
import multiprocessing, os, pathlib, signal, time
from multiprocessing.util import Finalize
import stoker

def remember(name):
    pathlib.Path(name).touch()

class Dataset:
    def __len__(self):
        return 1

    def __getitem__(self, index):
        if os.path.exists("False"):  # the next epoch has begun
            return index
        Finalize(None, remember, ("finalized",), exitpriority=1)
        context = multiprocessing.get_context("fork")
        for daemon in (True, False):
            process = context.Process(target=time.sleep, args=(30,), daemon=daemon)
            process.start()
            pathlib.Path(f"{daemon}").write_text(str(process.pid))
        return index

Finalize(None, remember, ("of the consumer",), exitpriority=1)
with stoker.Loader(Dataset(), 1, workers=stoker.Processes(1, start="START")) as loader:
    list(loader)

def is_running(name):
    try:
        return pathlib.Path(f"/proc/{pathlib.Path(name).read_text()}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False

told = [os.path.exists("finalized"), os.path.exists("of the consumer"), is_running("False")]
deadline = time.monotonic() + 5
while is_running("True") and time.monotonic() < deadline:
    time.sleep(0.01)
print(told, is_running("True"))
os.kill(int(pathlib.Path("False").read_text()), signal.SIGKILL)
"""


@pytest.mark.parametrize("start", ["nursery", "fork", "spawn"])
def test_finalizers_run_and_daemons_end(start, tmp_path):
    write(tmp_path, {"train.py": SCRIPT.replace("START", start)})
    status, told, errors = run(tmp_path, ["train.py"])
    assert (status, errors) == (0, "")
    assert told == "[True, False, True] False\n"
