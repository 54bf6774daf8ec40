"""The page lives as long as a loader that is watched, and leaves nothing: no thread, no socket, no file."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import stoker
from stoker import Watch
from tests.page.requests import answer, get, next_event


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("stoker-watch")]


def is_left(registry) -> list[str]:
    return [*threads(), *(os.listdir(registry) if registry.exists() else [])]


def test_nothing_is_served_unless_it_is_asked_for(registry):
    with stoker.Loader(np.arange(4)) as loader:
        list(loader)
        assert loader.watch_url is None
        assert is_left(registry) == []


def test_the_page_begins_with_the_first_loop_and_ends_with_the_loader(registry, capsys):
    loader = stoker.Loader(np.arange(8), 2, watch=True)
    assert (loader.watch_url, is_left(registry)) == (None, [])
    list(loader)
    list(loader)
    url = loader.watch_url
    assert answer(url)[0] == 200
    assert capsys.readouterr().err.count(url) == 1
    loader.close()
    assert is_left(registry) == []
    with pytest.raises(ConnectionError):
        answer(url)
    loader.close()


def test_a_stream_is_watched_from_its_beginning_to_its_end(registry):
    results = stoker.stream(abs, range(3), watch=True)
    assert answer(results.watch_url)[0] == 200
    list(results)
    assert is_left(registry) == []


@pytest.mark.parametrize("workers", [0, stoker.Threads(1), stoker.Processes(1)], ids=repr)
def test_a_loader_that_is_forgotten_takes_its_page_along(registry, workers):
    loader = stoker.Loader(np.arange(8), 2, workers=workers, watch=True)
    next(iter(loader))
    connection, response = get(loader.watch_url, "/events")
    assert next_event(response)
    del loader
    gc.collect()
    assert is_left(registry) == []
    connection.close()
    results = stoker.stream(abs, range(3), workers=workers, watch=True)
    next(results)
    del results
    gc.collect()
    assert is_left(registry) == []


def test_all_loaders_of_a_process_are_on_one_page(registry):
    with stoker.Loader(np.arange(8), 2, watch=True) as first:
        iter(first)
        with stoker.stream(abs, [1], watch=True) as second, stoker.Loader(np.arange(6), 3, watch=True) as third:
            iter(third)
            assert first.watch_url == second.watch_url == third.watch_url
            connection, response = get(first.watch_url, "/events")
            titles = [one["title"] for one in next_event(response)]
            assert titles == [
                "Loader(ndarray, batch_size=2, shuffle=False)",
                "stream(abs)",
                "Loader(ndarray, batch_size=3, shuffle=False)",
            ]
        while len(next_event(response)) > 1:
            pass
        connection.close()
    assert is_left(registry) == []


def test_a_second_loader_cannot_move_the_page():
    with stoker.Loader(np.arange(8), watch=True) as first, stoker.Loader(np.arange(8), watch=Watch("::1")) as second:
        iter(first)
        with pytest.raises(ValueError, match=r"Watch\(host='127.0.0.1', port=0\) already"):
            iter(second)


def test_watching_changes_nothing_of_the_stream():
    data = np.arange(16)
    with (
        stoker.Loader(data, 4, shuffle=True, workers=2) as plain,
        stoker.Loader(data, 4, shuffle=True, workers=2, watch=True) as watched,
    ):
        watched_batches = iter(watched)
        connection, response = get(watched.watch_url, "/events")
        for batch in plain:
            assert batch.tolist() == next(watched_batches).tolist()
            next_event(response)
        connection.close()


def test_a_loader_that_has_not_started_can_be_pickled():
    loader = pickle.loads(pickle.dumps(stoker.Loader(np.arange(8), 2, watch=True)))
    with loader:
        assert len(list(loader)) == 4
        assert answer(loader.watch_url)[0] == 200


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork")  # of JAX, if another test has imported it
def test_a_fork_neither_serves_nor_ends_the_page_of_its_parent(registry):
    with stoker.Loader(np.arange(8), 2, watch=True) as loader:
        iter(loader)
        child = os.fork()
        if not child:
            try:
                loader.close()
            finally:
                os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert answer(loader.watch_url)[0] == 200
    assert is_left(registry) == []


def program(code: str) -> subprocess.Popen:
    lines = f"import os, signal, sys\nimport numpy as np\nimport stoker\n{textwrap.dedent(code)}"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-c", lines], text=True, **pipes)


@pytest.mark.parametrize(
    "ending",
    [
        pytest.param("", id="end"),
        pytest.param("os.kill(os.getpid(), signal.SIGINT)", id="ctrl-c"),
        pytest.param("sys.exit(0)", id="exit", marks=pytest.mark.exhaustive),
        pytest.param("raise KeyboardInterrupt", id="interrupt", marks=pytest.mark.exhaustive),
        pytest.param("1 / 0", id="error", marks=pytest.mark.exhaustive),
    ],
)
def test_however_a_program_ends_no_file_is_left(registry, ending):
    with program(f"""
        loader = stoker.Loader(np.arange(8), 2, watch=True)
        batches = iter(loader)
        next(batches)
        print(len(os.listdir({str(registry)!r})))
        {ending}
    """) as process:
        output, _ = process.communicate(timeout=60)
    assert output == "1\n"
    assert os.listdir(registry) == []


def test_what_a_killed_program_leaves_is_removed_by_the_next(registry):
    with program("""
        loader = stoker.Loader(np.arange(8), 2, watch=True)
        batches = iter(loader)
        print("ready", flush=True)
        sys.stdin.read()
    """) as process:
        assert process.stdout.readline() == "ready\n"
        process.kill()
    assert len(os.listdir(registry)) == 1
    with stoker.Loader(np.arange(8), watch=True) as loader:
        iter(loader)
        connection, response = get(loader.watch_url, "/events")
        assert len(next_event(response)) == 1
        connection.close()
        assert len(os.listdir(registry)) == 1


# Of a file that is closed at once: an interrupt between ``with`` and what it opens leaves it to its own destructor.
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
def test_interrupts_at_any_moment_leave_nothing(registry):
    """Of the signal's handler, which raises wherever the main thread is."""

    class Interrupted(Exception):
        pass

    def interrupt(*_: object) -> None:
        raise Interrupted

    with stoker.Loader(np.arange(8), 2, watch=True) as loader:
        list(loader)  # and imports what is imported late, in which an interrupt would leave files open
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for number in range(40):
            loader = None
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0005 * (number + 1))
                with stoker.Loader(np.arange(8), 2, watch=True) as loader:
                    list(loader)
            except Interrupted:
                pass
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            del loader
            gc.collect()
            assert is_left(registry) == []
    finally:
        signal.signal(signal.SIGALRM, before)
