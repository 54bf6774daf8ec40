"""Numpy files are read in several threads at once."""

from __future__ import annotations

import gc
import sys
import threading

import numpy as np

from stoker.sources.files.arrays import read_npy
from stoker.sources.files.read_context import ReadContext


def test_headers_are_read_while_other_threads_read_some(tmp_path):
    """In releases of Python 3.11, its parser, which numpy reads headers with, fails if other threads come between."""
    np.save(tmp_path / "a.npy", np.arange(6).reshape(3, 2))
    failed = []

    class Cycle:
        def __init__(self):
            self.itself = self

        def __del__(self):  # code of Python's, so that another thread may get its turn in the middle of a parse
            sum(range(50))

    def read():
        for _ in range(1000):
            Cycle()
            try:
                read_npy(str(tmp_path / "a.npy"), ReadContext())
            except SystemError as error:
                failed.append(error)

    threads = [threading.Thread(target=read) for _ in range(4)]
    interval, threshold = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-5)
    gc.set_threshold(10, 1000, 1000)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
        gc.set_threshold(*threshold)
    assert not failed
