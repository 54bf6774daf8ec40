"""``max_bytes`` and a full disk: what fits is kept, all else is made as without a cache, and one line says so."""

from __future__ import annotations

import shutil
import subprocess
import textwrap

import pytest

from stoker import Cache, Inline, Loader, Processes, Threads
from stoker.stores.cache_folder import holding
from tests.faults.scarcity import run
from tests.stores.caching import Counted, Watch, assert_whole, calls, expected, files, nbytes, once, verified
from tests.streams import assert_same, epochs

N, WIDTH = 48, 200
BACKENDS = [Inline(), Threads(3), Processes(3)]
FULL = 140_000  # bytes of a cache of all samples, and some more


def counted(log=None):
    return Counted(N, log, WIDTH)


def test_what_fits_is_kept_and_the_rest_made_each_time(backend, path, log, caplog):
    limit, cache = FULL // 2, Cache(path, max_bytes=FULL // 2)
    with Watch(lambda: nbytes(path)) as watch:
        with Loader(counted(log), 4, shuffle=True, workers=backend, cache=cache) as loader:
            got = epochs(loader, 3)
            made = calls(log)
    assert watch.most <= limit
    assert_same(got, expected(counted(), cache, 3, shuffle=True))
    (found,) = verified(path)
    assert found.sound > N // 3, "all that fits, but for a batch"
    assert found.damaged == []
    assert sum(count == 1 for count in made.values()) == found.sound
    (line,) = caplog.messages
    assert line == f"the cache {path}: it has reached max_bytes. Samples that are not in it are made by the dataset"


def nbytes_at_once(path):
    """While no file is made, removed or grows: one after the other, they might be from different times."""
    if not path.exists():
        return 0
    with holding(str(path)):
        return nbytes(path)


@pytest.mark.parametrize("workers", BACKENDS, ids=repr)
def test_with_refresh_both_generations_count(workers, path):
    limit, cache = FULL + FULL // 3, Cache(path, refresh_every=2, max_bytes=FULL + FULL // 3)
    with Watch(lambda: nbytes_at_once(path)) as watch:
        with Loader(counted(), 4, shuffle=True, workers=workers, cache=cache) as loader:
            got = epochs(loader, 8)
    assert FULL * 0.9 < watch.most <= limit
    assert len(files(path)) <= 2
    assert_same(got, expected(counted(), cache, 8, shuffle=True))


def test_two_loaders_with_generations_of_their_own_keep_to_it_together(path):
    cache = Cache(path, refresh_every=2, max_bytes=FULL)
    with Watch(lambda: nbytes_at_once(path)) as watch:
        with Loader(counted(), 4, workers=Threads(3), cache=cache) as one:
            with Loader(counted(), 4, seed=1, workers=Threads(3), cache=cache) as other:
                for _ in zip(one, other, strict=True):
                    pass
    assert watch.most <= FULL


@pytest.mark.parametrize("workers", BACKENDS, ids=repr)
@pytest.mark.parametrize("limit", [0, 1000, 5000])
def test_with_no_room_for_a_single_sample_it_goes_on_without(limit, workers, path, log, caplog):
    cache = Cache(path, max_bytes=limit)
    with Loader(counted(log), 4, workers=workers, cache=cache) as loader:
        assert_same(epochs(loader, 2), expected(counted(), cache, 2))
    assert min(calls(log).values()) >= 2
    (line,) = caplog.messages
    assert "max_bytes" in line


def test_what_is_there_is_used_also_with_a_smaller_limit(path, log, caplog):
    with Loader(counted(log), 4, cache=Cache(path)) as loader:
        epochs(loader, 1)
    with Loader(counted(log), 4, workers=2, cache=Cache(path, max_bytes=1000)) as loader:
        epochs(loader, 2)
    assert calls(log) == once(N)
    assert caplog.messages == []
    assert_whole(path, N)


def test_what_did_not_fit_is_kept_by_a_run_with_a_greater_limit(path, log):
    for limit in (FULL // 2, 50e9):
        with Loader(counted(), 4, workers=2, cache=Cache(path, max_bytes=limit)) as loader:
            epochs(loader, 1)
    assert_whole(path, N)


@pytest.mark.parametrize("wrong", [-1, "50 GB", True, float("nan")])
def test_a_limit_that_makes_no_sense_is_refused(wrong, path):
    with pytest.raises(ValueError, match="max_bytes"):
        Cache(path, max_bytes=wrong)


# A full disk: a small one, in memory


@pytest.fixture
def disk(tmp_path):
    """A disk of 8 MiB, and the beginning of a command that sees it."""
    if not shutil.which("unshare") or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
        pytest.skip("needs a mount namespace of its own: unshare -m fails here")
    place = tmp_path / "disk"
    place.mkdir()
    return place, ("unshare", "-m", "sh", "-c", f'mount -t tmpfs -o size=8m none {place} && exec "$@"', "sh")


WORKERS = ["Inline()", "Threads(2)", "Processes(2)", "Processes(2, start='fork')"]

HEARING = """
import logging
from stoker.stores.cache_inventory import list_generations, verify

lines = []
class Ear(logging.Handler):
    def emit(self, record):
        lines.append(record.getMessage())
logging.getLogger("stoker").addHandler(Ear())
path = PATH
free = lambda: os.statvfs(path).f_bavail * os.statvfs(path).f_frsize
cache = stoker.Cache(path + "/cache")
"""


def ran(code, place, within=()):
    """What the program prints that has that place for its cache."""
    return run(f"PATH = {str(place)!r}\n{HEARING}{textwrap.dedent(code)}", within=within)


@pytest.mark.parametrize("workers", WORKERS)
def test_on_a_full_disk_it_goes_on_uncached_and_says_so_once(disk, workers):
    code = f"""
        with Loader(Big(40, mib=0.5), 2, workers={workers}, cache=cache) as loader:
            for _ in range(3):
                numbers = [number(row) for batch in loader for row in batch]
                assert numbers == list(range(40)), numbers
            assert len(lines) == 1 and "No space left on device. Samples that are not in it are made" in lines[0], lines
        (one,) = list_generations(path + "/cache")
        found = verify(one.path, lambda nbytes: None)
        assert found.damaged == [] and 10 <= found.sound < 16, found
        print("right")
    """
    assert ran(code, *disk) == "right\n"


@pytest.mark.parametrize("workers", WORKERS)
def test_a_disk_that_is_full_from_the_start(disk, workers):
    code = f"""
        with open(path + "/other", "wb") as other:
            other.write(bytes(free()))
        assert free() == 0
        with Loader(Big(6), 2, workers={workers}, cache=cache) as loader:
            for _ in range(2):
                assert [number(row) for batch in loader for row in batch] == list(range(6))
            assert len(lines) == 1 and "No space left on device. Samples are made by the dataset" in lines[0], lines
            os.unlink(path + "/other")
            for _ in range(3):
                assert [number(row) for batch in loader for row in batch] == list(range(6))
        with Loader(Big(6), 2, cache=cache) as loader:  # what was kept as soon as there was room
            assert [number(row) for batch in loader for row in batch] == list(range(6))
        (one,) = list_generations(path + "/cache")
        print(one.kept)
    """
    assert ran(code, *disk) == "6\n"


def test_a_table_that_is_too_big_for_the_disk(disk):
    code = """
        class Long(Big):
            def __getitem__(self, index):
                return index

        with Loader(Long(1_000_000), 50_000, cache=cache) as loader:
            batches = iter(loader)
            assert next(batches).tolist() == list(range(50_000))
            assert next(batches).tolist() == list(range(50_000, 100_000))
        assert len(lines) == 1 and "No space left" in lines[0], lines
        print("right")
    """
    assert ran(code, *disk) == "right\n"
