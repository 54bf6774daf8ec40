"""tinyloader's interface: what its document promises, and what it should have promised."""

from __future__ import annotations

import gc
import itertools
import multiprocessing
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from stoker import ClosedError
from stoker.compat.tinyloader import Loader, SharedMemoryShim, load, load_with_workers
from tests.compat.tiny import Failing, Mortal, Numbers, Plain, Trees, first
from tests.streams import assert_same

WAYS = {
    "in this process": load,
    "by one worker": lambda loader, items: load_with_workers(loader, items, 1),
    "by workers": lambda loader, items: load_with_workers(loader, items, num_worker=3),
    "in shared memory": lambda loader, items: load_with_workers(loader, items, 2, True, 5),
    "through the shim": lambda loader, items: load_with_workers(SharedMemoryShim(loader, None, 4), items, 2),
    "through the shim, in this process": lambda loader, items: load(SharedMemoryShim(loader), items),
}


@pytest.fixture(params=WAYS.values(), ids=WAYS.keys())
def way(request):
    return request.param


def test_results_come_in_order_and_the_loader_is_shut_down_once(way):
    loader = Numbers()
    assert [x.tolist() for x, _ in way(loader, range(40))] == [[n] * 3 for n in range(40)]
    assert loader.shutdowns == 1


def test_the_loop_may_be_within_a_with(way):
    loader = Numbers()
    with way(loader, list(range(10))) as generator:
        assert [first(result) for result in generator] == list(range(10))
        assert list(generator) == []
    assert loader.shutdowns == 1


def test_load_is_called_in_workers_or_here():
    here = os.getpid()
    assert {int(pid) for _, pid in load(Numbers(), range(8))} == {here}
    assert here not in {int(pid) for _, pid in load_with_workers(Numbers(), range(8), 2)}


def test_without_a_number_there_is_a_worker_for_each_cpu():
    with load_with_workers(Numbers(), itertools.count()) as generator:
        assert generator._stream.stats().workers == len(os.sched_getaffinity(0))


@pytest.mark.parametrize("within", [True, False])
def test_an_endless_loop_may_be_broken_off(way, within):
    loader = Numbers()
    if within:
        with way(loader, itertools.count()) as generator:
            for result in generator:
                if first(result) == 20:
                    break
    else:
        for result in way(loader, itertools.count()):
            if first(result) == 20:
                break
    assert loader.shutdowns == 1


def test_items_are_pulled_as_they_are_needed(way):
    pulled = itertools.count()
    with way(Numbers(), pulled) as generator:
        for _ in range(15):
            next(generator)
    assert next(pulled) <= 15 + 3 * 2 + 1


def test_in_this_process_an_item_may_depend_on_the_last_result():
    results = [1]
    for x, _ in load(Numbers(), iter(lambda: results[-1] * 2, 64)):
        results.append(int(x[0]))
    assert results == [1, 2, 4, 8, 16, 32]


@pytest.mark.parametrize(("blocks", "ahead"), [(1, 2), (2, 2), (3, 2), (4, 4), (9, 8)])
def test_blocks_bound_how_many_are_under_way(blocks, ahead):
    ways = [
        lambda items: load_with_workers(Numbers(), items, 2, True, blocks),
        lambda items: load_with_workers(SharedMemoryShim(Numbers(), None, blocks), items, 2),
        lambda items: load_with_workers(
            SharedMemoryShim(Numbers(), None, 99), items, 2, memory_pool_block_count=blocks
        ),
    ]
    for way in ways:
        pulled = itertools.count()
        with way(pulled) as generator:
            for _ in range(10):
                next(generator)
        assert next(pulled) <= 10 + ahead


def test_no_items(way):
    loader = Numbers()
    assert list(way(loader, [])) == []
    assert loader.shutdowns == 1


def test_trees_of_any_kind_come_as_they_are(way):
    got = list(way(Trees(), range(len(Trees.KINDS))))
    assert_same(got, list(Trees.KINDS))


def test_an_error_keeps_its_type_and_frames_and_the_rest_can_be_had(way):
    loader = Failing()
    with way(loader, range(8)) as generator:
        got = [first(next(generator)) for _ in range(5)]
        with pytest.raises(KeyError, match="five") as caught:
            next(generator)
        got += [first(result) for result in generator]
    assert got == [0, 1, 2, 3, 4, 6, 7]
    assert "over item 5" in "".join(caught.value.__notes__)
    assert loader.shutdowns == 1


def test_after_an_error_the_loader_is_shut_down(way):
    loader = Failing()
    with pytest.raises(KeyError):
        list(way(loader, range(8)))
    gc.collect()
    assert loader.shutdowns == 1


@pytest.mark.parametrize("method", ["make_request", "post_process"])
def test_an_error_in_this_process_comes_in_its_place(way, method):
    loader = Numbers()
    step = getattr(loader, method)

    def failing(value):
        if (value if method == "make_request" else first(value)) == 3:
            raise ZeroDivisionError(method)
        return step(value)

    setattr(loader, method, failing)
    with way(loader, range(8)) as generator:
        assert [first(next(generator)) for _ in range(3)] == [0, 1, 2]
        with pytest.raises(ZeroDivisionError, match=method):
            next(generator)


def test_killed_workers_lose_nothing(tmp_path):
    loader = Mortal(str(tmp_path))
    assert [first(result) for result in load_with_workers(loader, range(30), 3)] == list(range(30))
    assert len(list(tmp_path.iterdir())) == 4


def test_after_the_with_it_is_closed():
    with load_with_workers(Numbers(), range(9), 1) as generator:
        next(generator)
    generator.close()
    with pytest.raises(ClosedError):
        next(generator)


@pytest.mark.filterwarnings("ignore:.*fork")  # of JAX, if an earlier test has loaded it
def test_a_fork_of_this_process_shuts_nothing_down():
    def child() -> None:
        generator.close()
        assert loader.shutdowns == 0

    loader = Numbers()
    with load_with_workers(loader, itertools.count(), 1) as generator:
        next(generator)
        process = multiprocessing.get_context("fork").Process(target=child)
        process.start()
        process.join()
        assert process.exitcode == 0
        process.close()
        assert first(next(generator)) == 1
    assert loader.shutdowns == 1


def run_apart(program: str) -> None:
    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr


def test_a_real_manager_is_accepted():
    """In a process of its own, since Python's resource tracker stays until its end."""
    run_apart("""
        from multiprocessing.managers import SharedMemoryManager
        from stoker.compat.tinyloader import SharedMemoryShim, load_with_workers
        from tests.compat.tiny import Numbers, first

        with SharedMemoryManager() as smm:
            loader = SharedMemoryShim(Numbers(), smm=smm, memory_pool_block_count=2)
            with load_with_workers(loader, range(9), 2) as generator:
                assert [first(result) for result in generator] == list(range(9))
    """)


def test_at_the_end_of_the_program_the_loader_is_shut_down():
    run_apart("""
        import os
        from stoker.compat.tinyloader import load_with_workers
        from tests.compat.tiny import Numbers

        class Telling(Numbers):
            def shutdown(self):
                os._exit(0)

        generator = load_with_workers(Telling(), range(9), 2)
        next(generator)
        raise SystemExit(1)
    """)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: load(Numbers(), 5), TypeError, "items=5: pass an iterable"),
        (lambda: load_with_workers(Numbers(), None), TypeError, "items=None: pass an iterable"),
        (lambda: load_with_workers(Numbers(), [], 0), ValueError, "num_worker=0: pass a whole number of 1 or more"),
        (lambda: load_with_workers(Numbers(), [], -1), ValueError, "num_worker=-1"),
        (lambda: load_with_workers(Numbers(), [], 2.0), TypeError, "num_worker=2.0"),
        (lambda: load_with_workers(Numbers(), [], True), TypeError, "num_worker=True"),
        (lambda: load_with_workers(Numbers(), [], 1, 1), TypeError, "shared_memory_enabled=1: pass True or False"),
        (lambda: load_with_workers(Numbers(), [], 1, True, 0), ValueError, "memory_pool_block_count=0: pass a whole"),
        (lambda: SharedMemoryShim(Numbers(), None, 0), ValueError, "memory_pool_block_count=0: pass a whole"),
        (lambda: SharedMemoryShim(Numbers(), None, "2"), TypeError, "memory_pool_block_count='2'"),
        (lambda: SharedMemoryShim(Loader()), NotImplementedError, r"Loader has no load\(request\)"),
        (lambda: load(Loader(), []), NotImplementedError, r"Loader has no load\(request\): define one"),
        (lambda: load(Numbers, []), TypeError, "is a class: pass an object"),
        (lambda: load(len, []), TypeError, "has no make_request and no load and no post_process and no shutdown"),
    ],
)
def test_bad_arguments_are_errors_at_once(call, error, match):
    with pytest.raises(error, match=match):
        call()


def test_a_loader_need_not_be_derived():
    class Own:
        make_request = staticmethod(int)
        load = staticmethod(np.array)
        post_process = staticmethod(np.ndarray.item)
        shutdown = staticmethod(lambda: None)

    assert list(load_with_workers(Own(), ["1", "2"], 1)) == [1, 2]


def test_without_tinygrad_only_the_default_needs_it():
    """In a process that cannot import it."""
    run_apart("""
        import importlib.util, sys
        find = importlib.util.find_spec
        importlib.util.find_spec = lambda name, *rest: None if name == "tinygrad" else find(name, *rest)
        sys.modules["tinygrad"] = None
        from stoker.compat.tinyloader import load, load_with_workers
        from tests.compat.tiny import Numbers, Plain

        assert len(list(load_with_workers(Numbers(), [1, 2], 1))) == 2
        for call in (lambda: load(Plain(), []), lambda: Plain().post_process(())):
            try:
                call()
            except ImportError as error:
                assert "pip install stoker[tinygrad]" in str(error)
            else:
                raise SystemExit("no error")
    """)


@pytest.fixture
def tinygrad():
    return pytest.importorskip("tinygrad", reason="tinygrad is not installed")


def test_by_default_results_are_tensors_with_memory_of_their_own(way, tinygrad):
    def items():
        return [(np.full((2, 3), n, np.float32), np.array(n)) for n in range(6)]

    tensors = list(way(Plain(), items()))
    assert all(isinstance(tensor, tinygrad.Tensor) for pair in tensors for tensor in pair)
    assert_same([(x.numpy(), y.numpy()) for x, y in tensors], items())


def test_the_default_may_be_called_from_a_post_process_of_ones_own(tinygrad):
    class Halved(Plain):
        def post_process(self, response):
            (tensor,) = super().post_process((response,))
            return (tensor * 0.5).tolist()

    array = np.array([2.0, 4.0], np.float32)
    (tensor,) = Plain().post_process((array,))
    array[:] = 0
    assert tensor.tolist() == [2.0, 4.0]
    assert list(load_with_workers(Halved(), [tensor.numpy()], 1)) == [[1.0, 2.0]]
