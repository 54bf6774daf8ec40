"""An array is known by each byte of its contents, or by its file if it is mapped from one."""

from __future__ import annotations

import os

import numpy as np
import pytest

from stoker.stores.fingerprint import describe


def test_each_byte_of_a_large_array_counts():
    """Once, those over 256 MiB were looked at here and there."""
    large = np.zeros(2**28 + 2**20, np.uint8)
    before = describe(large)
    for place in np.linspace(0, large.size - 1, 7, dtype=int).tolist():
        large[place] = 1
        assert describe(large) != before
        large[place] = 0
    assert describe(large) == before


def test_each_byte_of_a_large_array_with_gaps_counts():
    large = np.zeros((3, 2**23, 2), np.float32)[..., 0]
    before = describe(large)
    assert before == describe(np.ascontiguousarray(large))
    large[1, -1] = 1
    assert describe(large) != before


def test_how_an_array_lies_in_memory_does_not_matter():
    one = np.arange(24).reshape(2, 3, 4)
    assert describe(one) == describe(np.asfortranarray(one)) == describe(one[::-1].copy()[::-1])


def test_what_lies_between_the_fields_of_an_array_does_not_matter():
    kind = np.dtype([("a", "i1"), ("b", "f8")], align=True)
    arrays = [np.frombuffer(bytes([fill]) * 64, np.uint8).copy().view(kind) for fill in (0, 255)]
    for one in arrays:
        one["a"], one["b"] = 1, 2
    assert describe(arrays[0]) == describe(arrays[1])


# Arrays in files


@pytest.fixture
def mapped(tmp_path):
    file = tmp_path / "data.bin"
    np.arange(1000).tofile(file)
    return lambda: np.memmap(file, np.int64, "r")


def test_a_mapped_array_is_known_by_its_file_and_not_read(mapped):
    assert describe(mapped()) == describe(mapped())
    assert "data.bin" in describe(mapped())


def test_parts_of_a_mapped_array_are_kept_apart(mapped):
    """As training and validation parts of one file are."""
    data = mapped()
    parts = [data, data[:500], data[500:], data[:1000:2], data[1::2], data[::-1], data.reshape(10, 100)]
    parts += [data.reshape(10, 100).T, data.reshape(20, 50)[:10], data.reshape(20, 50)[10:], data[[1, 2]], data[[1, 3]]]
    assert len({describe(part) for part in parts}) == len(parts)
    assert describe(data[500:]) == describe(mapped()[500:])


@pytest.mark.parametrize("mode", ["c", "r+"])
def test_a_mapped_array_that_can_be_written_to_is_known_by_its_contents(mode, tmp_path):
    """What was changed in memory may never come to the file, nor to its time of change."""
    np.arange(1000).tofile(tmp_path / "data.bin")
    data = np.memmap(tmp_path / "data.bin", np.int64, mode)
    before = describe(data)
    data[500] = -1
    assert describe(data) != before


def test_a_mapped_file_that_is_gone_is_known_by_its_contents(mapped, tmp_path):
    data = mapped()
    (tmp_path / "data.bin").unlink()
    assert describe(data) == describe(np.arange(1000))


def test_a_mapped_file_that_was_written_to_is_another(mapped, tmp_path):
    before = describe(mapped())
    np.arange(1, 1001).tofile(tmp_path / "data.bin")
    os.utime(tmp_path / "data.bin", ns=(1, 1))
    assert describe(mapped()) != before
