"""From Ctrl-C to the prompt, with 8 workers in the middle of something."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

_PROGRAM = """
import signal, time, numpy, stoker

signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell ignores for what it runs in the background

class Sleepy:
    def __len__(self):
        return 100
    def __getitem__(self, index):
        if index > 7:
            time.sleep(60)
        return numpy.zeros(1)

with stoker.Loader(Sleepy(), 1, workers=8) as loader:
    for step, _ in enumerate(loader):
        if step == 7:
            print("go", flush=True)
"""


def measure() -> dict[str, float]:
    program = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    )
    assert program.stdout is not None
    program.stdout.readline()
    began = time.perf_counter()
    os.killpg(program.pid, signal.SIGINT)  # as a terminal does
    program.wait()
    return {"seconds": time.perf_counter() - began}
