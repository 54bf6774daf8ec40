"""Several consumers fill one cache at once: each sample is made once in all, and each gets its own right stream."""

from __future__ import annotations

import contextlib
import pickle
import subprocess
import sys

import pytest

from stoker import Cache, Inline, Loader, Processes, Threads
from stoker.stores.cache_inventory import list_generations
from tests.stores.caching import Counted, assert_whole, calls, expected, files, once
from tests.streams import assert_same, kept

N = 150

CONSUMER = """
import pickle, sys
from stoker import Cache, Inline, Loader, Processes, Threads
from tests.stores.caching import Counted
from tests.streams import epochs

with Loader(Counted({n}, {log!r}), 5, workers={workers}, cache=Cache({path!r}, {refresh!r}), **{options!r}) as loader:
    len(loader)
    print("ready", flush=True)
    sys.stdin.readline()
    sys.stdout.buffer.write(pickle.dumps(epochs(loader, {epochs})))
"""


@contextlib.contextmanager
def consumer(**how):
    """A program of its own, which waits for a line before it begins."""
    command = [sys.executable, "-c", CONSUMER.format(**{"n": N, "refresh": None, "epochs": 2, "options": {}} | how)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        try:
            yield program
        finally:
            program.kill()


def streams(*programs):
    """What they deliver, begun at the same time."""
    for program in programs:
        assert program.stdout.readline() == b"ready\n", program.stderr.read().decode()
    for program in programs:
        program.stdin.write(b"go\n")
        program.stdin.flush()
    found = []
    for program in programs:
        told, errors = program.communicate(timeout=60)
        assert program.returncode == 0, errors.decode()
        assert errors == b""
        found.append(pickle.loads(told))
    return found


@pytest.mark.parametrize(
    ("one", "other"), [("Processes(2)",) * 2, ("Threads(2)", "Processes(2, start='fork')"), ("Inline()", "Inline()")]
)
def test_two_programs_fill_one_cache_at_once(one, other, path, log):
    how = {"path": str(path), "log": str(log)}
    options = [{"shuffle": True, "seed": 1}, {"shuffle": 20, "seed": 2}]
    with consumer(workers=one, options=options[0], **how) as first:
        with consumer(workers=other, options=options[1], **how) as second:
            found = streams(first, second)
    for stream, option in zip(found, options, strict=True):
        assert_same(stream, expected(Counted(N), Cache(path), 2, 5, **option))
    assert calls(log) == once(N)
    assert_whole(path, N)


def test_two_shards_fill_one_cache_at_once_and_find_each_others_samples_in_the_next_epoch(path, log):
    how = {"path": str(path), "log": str(log), "workers": "Processes(2)", "epochs": 3}
    options = [{"shuffle": True, "shard": (k, 2)} for k in range(2)]
    with consumer(options=options[0], **how) as first, consumer(options=options[1], **how) as second:
        found = streams(first, second)
    for stream, option in zip(found, options, strict=True):
        assert_same(stream, expected(Counted(N), Cache(path), 3, 5, **option))
    assert calls(log) == once(N)
    assert_whole(path, N)


def test_two_programs_refresh_one_cache_and_never_have_more_than_two_generations(path, log):
    how = {"path": str(path), "log": str(log), "workers": "Processes(2)", "epochs": 7, "refresh": 2}
    with consumer(options={"shuffle": True}, **how) as first, consumer(options={"shuffle": True}, **how) as second:
        found = streams(first, second)
    for stream in found:
        assert_same(stream, expected(Counted(N), Cache(path, 2), 7, 5, shuffle=True))
    assert len(files(path)) <= 2
    # Where one is a whole generation ahead, it drops what the other has not begun: that costs calls, and no more.
    assert min(calls(log).values()) >= 4


@pytest.mark.parametrize("workers", [Inline(), Threads(2), Processes(2)], ids=repr)
def test_two_loaders_of_one_program_share_it_batch_by_batch(workers, path, log):
    cache = Cache(path)
    options = [{"shuffle": True, "seed": seed} for seed in (1, 2)]
    with contextlib.ExitStack() as stack:
        loaders = [
            stack.enter_context(Loader(Counted(40, log), 5, workers=workers, cache=cache, **option))
            for option in options
        ]
        got = [[], []]
        for pair in zip(*loaders, strict=True):
            for stream, batch in zip(got, pair, strict=True):
                stream.append(kept(batch))
    for stream, option in zip(got, options, strict=True):
        assert_same([stream], expected(Counted(40), cache, 1, 5, **option))
    assert calls(log) == once(40)


def test_forked_workers_of_another_loader_keep_no_generation_in_use(path):
    """They have all files of their consumer open, and know nothing of them."""
    with Loader(Counted(12), 4, workers=Threads(2), cache=Cache(path)) as one:
        list(one)
        with Loader(Counted(12), 4, workers=Processes(2, start="fork")) as other:
            list(other)
            assert [generation.in_use for generation in list_generations(str(path))] == [True]
            one.close()
            assert [generation.in_use for generation in list_generations(str(path))] == [False]
