"""A flipped bit anywhere is found, the sample made again, and the log says so; a file that was cut short, likewise."""

from __future__ import annotations

import os
import random
import re
import shutil
import threading
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from stoker import Cache, Inline, Loader, Processes, Threads
from stoker.plan import Batch, Plan
from stoker.stores.cache_layout import ENTRY, HEADER, HEADER_BYTES
from stoker.stores.claims import READY
from tests.stores.caching import Counted, assert_whole, calls, expected, once
from tests.streams import assert_same, epochs

N = 24
BACKENDS = [Inline(), Threads(2), Processes(2)]
CONSTANT = ("magic", "count", "start", "check")  # of the header


@pytest.fixture
def file(path):
    """Of a cache that holds all samples."""
    with Loader(Counted(N), 4, cache=Cache(path)) as loader:
        epochs(loader, 1)
    return path / "all.samples"


@pytest.fixture
def due(path):
    return expected(Counted(N), Cache(path), 1)[0]


def flip(file, bit):
    """As a broken disk does it."""
    before = os.stat(file).st_mtime_ns
    with open(file, "r+b") as opened:
        opened.seek(bit // 8)
        (byte,) = opened.read(1)
        opened.seek(bit // 8)
        opened.write(bytes([byte ^ 1 << bit % 8]))
    if os.stat(file).st_mtime_ns == before:  # clocks of some file systems tick a hundred times a second
        os.utime(file, ns=(before, before + 1))


def let_workers_rest():
    """Until they have made all that they may make ahead: what breaks between a check and the read that follows it is
    found by no check."""
    resting, end = 0, time.monotonic() + 10
    while resting < 3 and time.monotonic() < end:
        time.sleep(0.01)
        resting = 0 if any_task_runs() else resting + 1


def any_task_runs():
    """Of this process, but for this thread, and of all that it has started."""
    processes = [os.getpid(), *(child.pid for child in psutil.Process().children(recursive=True))]
    try:
        tasks = [task for pid in processes for task in Path(f"/proc/{pid}/task").iterdir()]
        others = [task for task in tasks if task.name != str(threading.get_native_id())]
        states = [(task / "stat").read_text().rpartition(")")[2].split()[0] for task in others]
    except (FileNotFoundError, ProcessLookupError):  # one has just ended
        return True
    return "R" in states or "D" in states


def entries(file):
    return np.fromfile(file, ENTRY, N, offset=HEADER_BYTES)


def field_bits(names, dtype, start):
    """The bits of these fields."""
    for name in names:
        kind, offset = dtype.fields[name][:2]
        yield from range(8 * (start + offset), 8 * (start + offset + kind.itemsize))


def bits_of_samples(file):
    """Bits of the samples themselves, and the sample that each belongs to."""
    chance = random.Random(1)
    for index, entry in enumerate(entries(file)):
        if entry["state"] == READY:
            yield 8 * int(entry["offset"]) + chance.randrange(8 * int(entry["nbytes"])), index


def bits_of_entries(file):
    chance = random.Random(2)
    names = ["offset", "nbytes", "form", "aside", "check"]
    for index in range(N):
        bits = list(field_bits([names[index % len(names)]], ENTRY, HEADER_BYTES + index * ENTRY.itemsize))
        yield chance.choice(bits), index


def damaged_samples(caplog):
    """What the log says, and nothing else."""
    told = [re.search(r"sample (\d+) is damaged .* is made again$", line) for line in caplog.messages]
    return sorted(int(found[1]) for found in told)


def read(path, log, workers, count=1):
    with Loader(Counted(N, log), 4, workers=workers, cache=Cache(path)) as loader:
        return epochs(loader, count)


# Between two runs


@pytest.mark.parametrize("where", [bits_of_samples, bits_of_entries])
def test_a_bit_of_a_sample_or_its_entry_is_found_and_the_sample_made_again(where, path, file, due, log, caplog):
    sound = shutil.copy(file, path.parent / "sound")
    for bit, index in where(file):
        flip(file, bit)
        assert_same(read(path, log, Inline()), [due])
        assert calls(log) == {index: 1}
        (line,) = caplog.messages
        assert line == f"the cache {path}: sample {index} is damaged (its checksum is wrong) and is made again"
        assert_whole(path, N)
        shutil.copy(sound, file), log.unlink(), caplog.clear()


@pytest.mark.parametrize("workers", BACKENDS, ids=repr)
def test_many_at_once_are_found_each_by_one_of_the_workers(workers, path, file, due, log, caplog):
    for bit, _ in [*bits_of_samples(file)][:10]:
        flip(file, bit)
    assert_same(read(path, log, workers, 2), [due, due])
    assert calls(log) == once(10)
    assert damaged_samples(caplog) == list(range(10))
    assert_whole(path, N)


def test_a_bit_of_a_samples_state_makes_it_missing_or_damaged_and_no_more(path, file, due, log):
    sound = shutil.copy(file, path.parent / "sound")
    for bit in field_bits(["state", "owner"], ENTRY, HEADER_BYTES + 7 * ENTRY.itemsize):
        flip(file, bit)
        assert_same(read(path, log, Inline()), [due])
        assert calls(log) in ({}, {7: 1})
        assert_whole(path, N)
        shutil.copy(sound, file), log.unlink(missing_ok=True)


def test_a_bit_of_the_header_costs_no_sample(path, file, due, log, caplog):
    sound = shutil.copy(file, path.parent / "sound")
    for name in HEADER.names:
        for bit in [*field_bits([name], HEADER, 0)][::3]:
            flip(file, bit)
            assert_same(read(path, log, Inline()), [due])
            assert calls(log) == {}
            assert [re.sub(".*: ", "", line) for line in caplog.messages] == (
                ["its header is damaged and is written again"] if name in CONSTANT else []
            )
            assert_whole(path, N)
            shutil.copy(sound, file), caplog.clear()


def test_what_is_written_after_the_header_was_damaged_harms_nothing(path, due, log):
    """The tail is where the next sample goes: with a wrong one, it would go over another."""
    with Loader(Counted(N), 4, cache=Cache(path)) as loader:
        next(iter(loader)), next(iter(loader))
    file, sound = path / "all.samples", shutil.copy(path / "all.samples", path.parent / "sound")
    made = int((entries(file)["state"] == READY).sum())
    for bit in [*field_bits(["tail", "owners", "changes", "discarded"], HEADER, 0)][::3]:
        flip(file, bit)
        assert_same(read(path, log, Inline()), [due])
        assert sum(calls(log).values()) == N - made
        assert_whole(path, N)
        assert file.stat().st_size < 10**5
        shutil.copy(sound, file), log.unlink()


def test_a_file_of_noise_is_filled_anew(path, file, due, log, caplog):
    file.write_bytes(random.Random(3).randbytes(file.stat().st_size))
    assert_same(read(path, log, Inline(), 2), [due, due])
    assert calls(log) == once(N)
    assert "its header is damaged" in caplog.text
    assert_whole(path, N)


@pytest.mark.parametrize("left", [0, 1, 50, HEADER_BYTES, HEADER_BYTES + 100, -1, -1000])
@pytest.mark.parametrize("workers", BACKENDS, ids=repr)
def test_what_was_cut_off_is_made_again(workers, left, path, file, due, log, caplog):
    size = left % file.stat().st_size
    os.truncate(file, size)
    gone = [k for k, entry in enumerate(entries(path / "all.samples")) if entry["offset"] + entry["nbytes"] > size]
    gone += range(len(entries(file)), N)
    assert_same(read(path, log, workers, 2), [due, due])
    assert calls(log) == dict.fromkeys(gone, 1)
    assert_whole(path, N)


def test_of_very_many_damaged_samples_only_some_are_named(path, log, caplog):
    with Loader(Counted(500), 50, cache=Cache(path)) as loader:
        epochs(loader, 1)
    os.truncate(path / "all.samples", 40_000)
    with Loader(Counted(500, log), 50, cache=Cache(path)) as loader:
        epochs(loader, 2)
    assert max(calls(log).values()) == 1
    assert len(caplog.messages) == 21
    assert caplog.messages[-1].endswith("more than 20 samples are damaged; all of them are made again")


# In the middle of a run


@pytest.mark.parametrize("workers", BACKENDS, ids=repr)
@pytest.mark.parametrize("where", [bits_of_samples, bits_of_entries])
def test_bits_that_flip_while_it_is_read_are_found(where, workers, path, file, due, log, caplog):
    """Some batches of the next epoch are made by then; what was in them is found in the one after it."""
    with Loader(Counted(N, log), 4, workers=workers, cache=Cache(path)) as loader:
        epochs(loader, 2)
        let_workers_rest()
        for bit, _ in [*where(file)][3:20:4]:
            flip(file, bit)
        assert_same(epochs(loader, 3), [due] * 3)
    assert calls(log) == dict.fromkeys(range(3, 20, 4), 1)
    assert damaged_samples(caplog) == [*range(3, 20, 4)]
    assert_whole(path, N)


@pytest.mark.parametrize("where", [bits_of_samples, bits_of_entries])
def test_bits_that_flip_while_it_is_filled_are_found(where, path, due, log, caplog):
    """By a worker who fills it alone. Where several fill it, they cannot know who has changed the file."""
    with Loader(Counted(N, log), 4, cache=Cache(path)) as loader:
        got, batches = [], iter(loader)
        for _ in range(3):
            got.append(next(batches))
        for bit, _ in [*where(path / "all.samples")][:12:5]:
            flip(path / "all.samples", bit)
        assert_same([[*got, *batches], *epochs(loader, 1)], [due, due])
    assert damaged_samples(caplog) == [0, 5, 10]
    assert_whole(path, N)


def test_a_header_that_is_damaged_while_it_is_filled_harms_nothing(path, due):
    for bit in [*field_bits(HEADER.names, HEADER, 0)][::5]:
        with Loader(Counted(N), 4, cache=Cache(path)) as loader:
            got, batches = [], iter(loader)
            got.append(next(batches))
            flip(path / "all.samples", bit)
            assert_same([[*got, *batches], *epochs(loader, 1)], [due, due])
        assert_same(read(path, None, Inline()), [due])
        assert_whole(path, N)
        shutil.rmtree(path)


@pytest.mark.parametrize("workers", BACKENDS, ids=repr)
def test_samples_that_are_cut_off_while_it_is_read_are_made_again(workers, path, file, due, log):
    with Loader(Counted(N, log), 4, workers=workers, cache=Cache(path)) as loader:
        epochs(loader, 1)
        if not isinstance(workers, Processes):  # to read what was cut off ends the process: a worker is replaced
            let_workers_rest()
        os.truncate(file, int(entries(file)["offset"][10]))
        assert_same(epochs(loader, 3), [due] * 3)
    assert calls(log) == dict.fromkeys(range(10, N), 1)
    assert_whole(path, N)


class Cutting(Counted):
    """While its sample 11 is made, somebody cuts the cache's file before sample 9."""

    file: Path | None = None

    def __getitem__(self, index):
        if index == 11 and self.file is not None:
            os.truncate(self.file, int(entries(self.file)["offset"][9]))
            self.file = None
        return super().__getitem__(index)


def test_samples_that_are_cut_off_while_others_of_their_batch_are_made_are_made_again(path, due):
    dataset = Cutting(N)
    with Loader(dataset, 1, cache=Cache(path)) as loader:
        for _ in zip(range(11), loader, strict=False):
            pass
    dataset.file = path / "all.samples"
    with Loader(dataset, 4, cache=Cache(path)) as loader:
        assert_same(epochs(loader, 2), [due] * 2)
    assert_whole(path, N)


def test_an_entry_that_led_beyond_the_cut_is_not_taken_for_what_was_written_there_since(path, file, due):
    """The table is cut, too: of sample 0 there is an entry, and when it is asked for, another lies where it leads."""
    os.truncate(file, HEADER_BYTES + ENTRY.itemsize)
    seed = next(seed for seed in range(1000) if Plan(N, N, True, seed).indices(Batch(0, 0, N, 0))[-1] == 0)
    with Loader(Counted(N), 4, seed=seed, shuffle=True, cache=Cache(path)) as loader:
        got = {int(k): batch["noise"][place] for batch in loader for place, k in enumerate(batch["index"].tolist())}
    for batch in due:
        for place, k in enumerate(batch["index"].tolist()):
            assert (got[k] == batch["noise"][place]).all()
