"""Short of memory, in all its kinds: the right stream, or an error that says what to change. No SIGBUS, no hang."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

import numpy as np
import pytest

from stoker import Loader, Processes, Threads
from stoker.workers import transport
from tests.faults.scarcity import cgroup, run

MIB = 2**20
WORKERS = ["Inline()", "Threads(2)", "Processes(2)", "Processes(2, start='fork')", "Processes(2, start='spawn')"]


# /dev/shm: containers have 64 MB of it, or none


@pytest.fixture(params=["size=64m", "size=64m,ro"])
def small_shm(request):
    if not shutil.which("unshare") or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
        pytest.skip("needs a mount namespace of its own: unshare -m fails here")
    mount = f'mount -t tmpfs -o {request.param} none /dev/shm && exec "$@"'
    return "unshare", "-m", "sh", "-c", mount, "sh"


def test_dev_shm_may_be_small_or_not_writable(small_shm):
    """192 MB of batches are held at once."""
    code = """
        assert os.statvfs("/dev/shm").f_blocks * os.statvfs("/dev/shm").f_frsize == 64 * MiB
        with Loader(Big(24, mib=8), 1, workers=2) as loader:
            print([number(batch) for batch in list(loader)] == list(range(24)))
    """
    assert run(code, within=small_shm) == "True\n"


@pytest.mark.parametrize("small_shm", ["size=64m,ro"], indirect=True)
def test_dev_shm_is_not_needed_for_tensors(small_shm):
    pytest.importorskip("torch")
    code = """
        import torch

        class Tensors(Big):
            def __getitem__(self, index):
                return {"x": torch.full((8 * MiB,), index, dtype=torch.uint8), "y": index}

        with Loader(Tensors(16), 1, workers=2) as loader:
            held = list(loader)
        print({type(batch["x"]).__name__ for batch in held})
        print([number(batch["x"]) for batch in held] == [int(batch["y"][0]) for batch in held] == list(range(16)))
    """
    assert run(code, within=small_shm) == "{'Tensor'}\nTrue\n"


# Address space: ulimit -v


@pytest.mark.parametrize(
    ("moment", "workers"),
    [*[("before the start", workers) for workers in WORKERS[2:]], *[("later", workers) for workers in WORKERS[1:4]]],
)
def test_short_of_address_space_is_an_error_in_its_turn_and_a_smaller_loader_works(moment, workers):
    """Batches of 60 MB are held with 200 MB to go. Limited before the start, the workers are short as well."""
    code = f"""
        def limit():
            used = psutil.Process().memory_info().vms
            resource.setrlimit(resource.RLIMIT_AS, (used + 200 * MiB, resource.RLIM_INFINITY))

        loader, held = Loader(Big(8, mib=60), 1, workers={workers}), []
        if {moment == "later"}:
            held.append(next(iter(loader)))
        limit()
        loader.set_epoch(1)
        numbers, errors = go_on_after(MemoryError, loader, held)
        loader.close()
        held.clear()
        assert len(numbers) + len(errors) == 8 and sorted(set(numbers)) == numbers, (numbers, errors)
        ours = [error for error in errors if not error.startswith("Unable to allocate")]  # the dataset's own
        assert all("batch_size" in error or "hold" in error for error in ours), ours[0]
        with Loader(Big(8), 1, workers={workers}) as small:
            print([number(batch) for batch in small] == list(range(8)))
    """
    assert run(code) == "True\n"


# File size: ulimit -f, which anonymous files are subject to


@pytest.mark.parametrize("workers", [WORKERS[0], *WORKERS[2:4]])
def test_a_limit_of_file_size_is_an_error_that_names_it(workers):
    code = f"""
        resource.setrlimit(resource.RLIMIT_FSIZE, (MiB, MiB))
        with Loader(Big(4, mib=4), 1, workers={workers}) as loader:
            iterator = iter(loader)
            for _ in range(4):
                try:
                    next(iterator)
                except (MemoryError, OSError) as error:
                    assert "ulimit -f" in str(error), error
                else:
                    raise AssertionError("it fitted")
    """
    assert run(code) == ""


@pytest.mark.parametrize("workers", ["Processes(2)", "Processes(2, start='spawn')"])
def test_a_dataset_beyond_the_limit_of_file_size_is_an_error_that_names_it(workers):
    code = f"""
        resource.setrlimit(resource.RLIMIT_FSIZE, (MiB, MiB))
        before = holdings()
        with Loader(np.zeros((4, 4 * MiB), np.uint8), 1, workers={workers}) as loader:
            try:
                next(iter(loader))
            except (MemoryError, OSError) as error:
                assert "ulimit -f" in str(error), error
            else:
                raise AssertionError("it fitted")
        assert holdings() == before, (before, holdings())
    """
    assert run(code) == ""


# A container's memory


@pytest.fixture
def container():
    limit = 256 * MIB
    with cgroup(
        "memory", **{"limit_in_bytes": limit, "memsw.limit_in_bytes": limit, "max": limit, "swap.max": 0}
    ) as within:
        yield within


@pytest.mark.parametrize("workers", WORKERS[1:4])
def test_far_more_data_than_memory_goes_through_a_container_batch_by_batch(container, workers):
    code = f"""
        with Loader(Big(128, mib=6), 1, workers={workers}) as loader:
            print([number(batch) for batch in loader] == list(range(128)))
    """
    assert run(code, within=container) == "True\n"


HUNGRY = """
    class Hungry(Big):
        def __getitem__(self, index):
            if index == 5 and not os.path.exists({marker!r}):
                open({create!r}, "w").close()
                eaten = []
                while True:
                    eaten.append(np.ones(MiB))
            return super().__getitem__(index)
"""


@pytest.mark.parametrize("workers", WORKERS[2:4])
def test_an_oom_kill_that_happens_once_loses_nothing(container, workers, tmp_path):
    marker = str(tmp_path / "killed")
    code = f"""{HUNGRY.format(marker=marker, create=marker)}
    with Loader(Hungry(20), 1, workers={workers}) as loader:
        print([number(batch) for batch in loader] == list(range(20)))
    """
    assert run(code, within=container) == "True\n"
    assert os.path.exists(marker)


@pytest.mark.parametrize("workers", WORKERS[2:4])
def test_a_sample_that_always_brings_the_oom_killer_is_an_error_with_figures(container, workers, tmp_path):
    code = f"""{HUNGRY.format(marker=str(tmp_path / "never"), create=str(tmp_path / "eating"))}
    with Loader(Hungry(8), 1, workers={workers}) as loader:
        numbers, errors = go_on_after(stoker.WorkerDied, loader, [])
        print(numbers, *errors)
    """
    printed = run(code, within=container)
    assert printed.startswith("[0, 1, 2, 3, 4, 6, 7] ")
    assert "SIGKILL" in printed
    assert re.search(r"\d+(\.\d+)? ?[MG]i?B", printed), f"no figures of memory: {printed}"


# Held batches


@pytest.mark.parametrize("workers", [Threads(2), Processes(2), Processes(2, start="fork")], ids=repr)
def test_slots_do_not_grow_beyond_the_cap_however_much_is_held(workers, monkeypatch):
    """160 MB are held, with a cap of 16 MB: the rest are copies."""
    monkeypatch.setattr(transport, "HELD_BYTES", 16 * MIB)

    class Big:
        def __len__(self):
            return 40

        def __getitem__(self, index):
            return np.full(4 * MIB, index, np.uint8)

    with Loader(Big(), 1, workers=workers) as loader:
        held, sizes = [], []
        for batch in loader:
            held.append(batch)
            sizes.append(shared_bytes())
        assert [(int(batch.min()), int(batch.max())) for batch in held] == [(k, k) for k in range(40)]
        being_made = (2 * 2 + 2) * 4 * MIB  # workers x prefetch, the one just taken and the one that is copied
        assert max(sizes) <= 1.25 * (16 * MIB + being_made)
        assert sizes[-1] == sizes[20], "it has come to rest"


def shared_bytes() -> int:
    """What the anonymous files of this process really take."""
    total = 0
    for fd in os.listdir("/proc/self/fd"):
        if os.path.islink(f"/proc/self/fd/{fd}") and "/memfd:stoker" in os.readlink(f"/proc/self/fd/{fd}"):
            total += os.fstat(int(fd)).st_blocks * 512
    return total
