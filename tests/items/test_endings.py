"""However a stream ends, nothing is left behind: that is checked after every test, by conftest."""

from __future__ import annotations

import gc
import itertools
import pickle
import subprocess
import sys
import textwrap

import pytest

import stoker
from stoker import ClosedError, Processes
from tests.items import works


def test_a_break_ends_it(backend):
    for result in stoker.stream(works.number, itertools.count(), workers=backend):
        if result == 9:
            break


def test_a_stream_that_is_forgotten_ends_its_workers(backend):
    results = stoker.stream(works.rows, itertools.count(), workers=backend)
    held = [next(results) for _ in range(5)]
    del results
    gc.collect()
    assert [array.tolist() for array in held] == [works.rows(n).tolist() for n in range(5)]


def test_at_the_end_of_the_items_the_workers_go_though_nobody_closes_it():
    results = stoker.stream(works.number, range(5), workers=2)
    assert list(results) == [0, 1, 2, 3, 4]
    assert results.worker_pids == []
    assert list(results) == []


def test_closing_it_twice_or_unstarted_is_fine(backend):
    results = stoker.stream(works.number, range(5), workers=backend)
    results.close()
    results.close()
    with pytest.raises(ClosedError, match="this stream was closed: make a new one"):
        next(results)


def test_held_results_outlive_it(backend):
    with stoker.stream(works.rows, range(5), workers=backend) as results:
        held = list(results)
    assert [array.tolist() for array in held] == [works.rows(n).tolist() for n in range(5)]


def test_an_exception_in_the_loop_ends_it(backend):
    with pytest.raises(ZeroDivisionError):
        with stoker.stream(works.number, itertools.count(), workers=backend) as results:
            [1 // result for result in results]


def test_an_unstarted_stream_pickles_if_its_items_do():
    with pickle.loads(pickle.dumps(stoker.stream(works.number, [1, 2], workers=1))) as copy:
        assert list(copy) == [1, 2]


@pytest.mark.parametrize("workers", ["Processes(2)", "Processes(2, start='fork')", "Processes(2, start='spawn')"])
def test_a_program_that_ends_in_the_middle_ends(workers):
    program = f"""
        import itertools, stoker
        from stoker import Processes
        from tests.items import works
        results = stoker.stream(works.number, itertools.count(), workers={workers})
        print([next(results) for _ in range(3)])
    """
    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "[0, 1, 2]\n", "")


def test_several_at_the_same_time(backend):
    with (
        stoker.stream(works.number, range(20), workers=backend) as one,
        stoker.stream(works.number, one, workers=backend) as two,
        stoker.stream(works.number, range(20), workers=Processes(1)) as three,
    ):
        assert list(zip(two, three, strict=True)) == [(n, n) for n in range(20)]
