"""Anonymous files, mappings, segments and leases: each frees what it made."""

from __future__ import annotations

import gc
import os
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from stoker.memory import Leases, Segment, Slots, anonymous, mappings_left
from stoker.memory.anonymous import allocate, anonymous_file
from stoker.memory.mapping import MappedFile
from tests.lifecycle.storms import Storm


def maps() -> int:
    with open("/proc/self/maps") as file:
        return sum("stoker" in line for line in file)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("memfd", [True, False])
def test_memory_is_shared_by_descriptor_with_and_without_memfd(memfd):
    """The way for systems without memfd_create is tested by forcing it."""
    fd = anonymous_file(memfd=memfd)
    allocate(fd, 8192, 4096)
    one, two = MappedFile(fd, 4096, 8192), MappedFile(fd, 4096, 8192)
    os.close(fd)
    one.bytes[:] = 7
    assert (two.bytes == 7).all()


def test_a_mapping_holds_no_descriptor_and_lives_as_long_as_its_arrays():
    before = maps(), descriptors()
    fd = anonymous_file()
    allocate(fd, 0, 4096)
    mapping = MappedFile(fd, 4096)
    os.close(fd)
    assert descriptors() == before[1]
    view = mapping.bytes[5:10]
    del mapping
    gc.collect()
    assert maps() == before[0] + 1
    view[:] = 1  # still there
    del view
    gc.collect()
    assert maps() == before[0]


def test_a_mapping_is_unmapped_whatever_interrupts_its_making_or_its_end():
    before = maps(), mappings_left()
    fd = anonymous_file()
    allocate(fd, 0, 4096)
    with Storm().every(0.0002) as storm:
        while storm.count < 300:
            storm.all_of((MappedFile(fd, 4096).size for _ in range(100)), int)
    os.close(fd)
    gc.collect()
    assert (maps(), mappings_left()) == before


def test_the_file_of_a_segment_is_closed_whatever_interrupts_its_making_or_its_end():
    before = descriptors()
    parts = [memoryview(bytes(1000))]
    with Storm().every(0.0002) as storm:
        while storm.count < 1000:
            storm.all_of((Segment.write(parts).fd for _ in range(100)), int)
    gc.collect()
    assert descriptors() == before


def test_the_file_of_a_segment_is_closed_once():
    segment = Segment.write([memoryview(b"x")])
    fd = segment.fd
    segment.close()
    other = os.open(os.devnull, os.O_RDONLY)  # which the system gives the same number
    del segment
    gc.collect()
    assert other == fd
    os.close(other)


def test_threads_may_make_segments_at_the_same_time():
    def make_and_close(times):
        for _ in range(times):
            Segment.write([memoryview(b"abc")]).close()

    held = [Segment.write([memoryview(b"x")]) for _ in range(50)]
    before, interval = descriptors(), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            for made in [pool.submit(make_and_close, 300) for _ in range(4)]:
                made.result()
    finally:
        sys.setswitchinterval(interval)
    assert descriptors() == before
    del held


def test_no_room_is_an_error_that_says_what_to_change(monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(anonymous.os, "posix_fallocate", full)
    with pytest.raises(MemoryError, match=r"no room for 1\.0 MiB.*smaller batch_size"):
        allocate(0, 0, 2**20)


def test_a_lease_ends_when_the_last_view_is_gone():
    slots, leases = Slots.create(), Leases()
    leases.open(3, 1)
    root = leases.root(3, slots.get(3).reserve(1000), 0, 1000)
    view = np.ndarray((10,), np.int32, root, 64)
    part = view[2:5]
    del root, view
    gc.collect()
    assert leases.free() == []
    part[:] = 1
    del part
    gc.collect()
    assert leases.free() == [3]
    slots.close()


def test_a_tensor_over_a_batch_holds_its_lease():
    torch = pytest.importorskip("torch")
    slots, leases = Slots.create(), Leases()
    leases.open(0, 1)
    tensor = torch.from_numpy(np.ndarray((10,), np.int32, leases.root(0, slots.get(0).reserve(100), 0, 100)))[3:]
    gc.collect()
    assert leases.free() == []
    del tensor
    gc.collect()
    assert leases.free() == [0]
    slots.close()


def test_a_leases_callback_does_not_keep_the_owner_alive_nor_fail_after_it():
    slots, leases = Slots.create(), Leases()
    leases.open(0, 1)
    root = leases.root(0, slots.get(0).reserve(10), 0, 10)
    slots.close()
    del leases, slots
    gc.collect()
    root[:] = 3  # the memory outlives the loader
    del root
    gc.collect()


def test_a_slot_is_free_when_all_its_batches_are_gone_or_were_dropped():
    slots, leases = Slots.create(), Leases()
    mapping = slots.get(5).reserve(1000)
    leases.open(5, 3)
    one, two = leases.root(5, mapping, 0, 100), leases.root(5, mapping, 128, 100)
    del one
    leases.drop(5)
    assert leases.free() == []
    del two
    gc.collect()
    assert leases.free() == [5]
    slots.close()


def test_a_segment_gives_back_what_was_written_and_writes_stay_private():
    parts = [memoryview(b"head"), memoryview(np.arange(1000)), memoryview(b""), memoryview(bytes(70000))]
    segment = Segment.write(parts)
    first, second = segment.read(), segment.read()
    assert [bytes(part) for part in first] == [bytes(part) for part in parts]
    array = np.frombuffer(first[1], np.int64)
    array[0] = -1  # a dataset may write into its arrays
    assert np.frombuffer(second[1], np.int64)[0] == 0
    segment.close()


def test_a_segment_is_sealed():
    segment = Segment.write([memoryview(b"x" * 10)])
    with pytest.raises(PermissionError):
        os.pwrite(segment.fd, b"y", 0)
    segment.close()


def test_a_big_array_shares_the_pages_of_its_sealed_copy():
    """It keeps its address and contents; its memory is the segment's until one writes, and then one's own."""
    array = np.arange(2**24, dtype=np.int64)  # 128 MiB
    view, address = array[5:], array.ctypes.data
    private = anonymous_kilobytes()
    segment = Segment.write([memoryview(b"head"), array.data])
    assert private - anonymous_kilobytes() > 120 * 1024
    assert array.ctypes.data == address
    assert array[-1] == 2**24 - 1
    assert view[0] == 5
    assert (array[:: 2**18] == np.arange(0, 2**24, 2**18)).all()
    array[:] = -1  # ours alone
    assert (view == -1).all()
    head, copy = segment.read()
    assert bytes(head) == b"head"
    assert np.array_equal(np.frombuffer(copy, np.int64)[:: 2**18], np.arange(0, 2**24, 2**18))
    segment.close()
    array.resize(2**25, refcheck=False)  # malloc moves and frees it as ever
    assert array[0] == -1


def anonymous_kilobytes() -> int:
    with open("/proc/self/smaps_rollup") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Anonymous:"))


@pytest.mark.parametrize("kind", ["part", "mapped"])
def test_memory_that_is_not_a_block_of_its_own_is_left_alone(kind, tmp_path):
    size = 2**26
    if kind == "part":
        data = np.ones(size + 8192, np.uint8)[4096 + 7 :][:size]
    else:
        np.ones(size, np.uint8).tofile(tmp_path / "file")
        data = np.memmap(tmp_path / "file", np.uint8, "r+")
    private = anonymous_kilobytes()
    segment = Segment.write([memoryview(data)])
    assert abs(private - anonymous_kilobytes()) < 8 * 1024
    assert (np.frombuffer(segment.read()[0], np.uint8) == 1).all()
    segment.close()


def test_the_descriptor_stays_open_while_a_thread_has_borrowed_the_slots():
    slots = Slots.create()
    fd = slots.fd
    assert slots.borrow("one")
    assert slots.borrow("other")
    slots.close()
    slots.give_back("one")
    os.fstat(fd)
    assert not slots.borrow("late")
    os.fstat(fd)
    slots.give_back("other")
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)
    slots.close()


def test_a_root_that_was_only_offered_does_not_count():
    """Whoever is interrupted between making it and handing it out makes another one."""
    slots, leases = Slots.create(), Leases()
    mapping = slots.get(0, 4096).reserve(100)
    leases.open(0, 1)
    root, lease = leases.offer(0, mapping, 0, 100)
    del root, lease
    assert leases.free() == []
    root, lease = leases.offer(0, mapping, 0, 100)
    lease.slot = 0
    assert leases.free() == []
    del root
    assert leases.free() == [0]
    del mapping, lease
    slots.close()
