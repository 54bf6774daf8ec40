"""Large arrays travel from where they are, and the slot's bytes are the same as if they had been copied into it."""

from __future__ import annotations

import numpy as np
import pytest

from stoker.collation import collate
from stoker.memory import Encoder, LooseArrays, Slots

LARGE, SMALL = (2, 40_000), (7,)  # of float32: 320 KB, and 28 bytes


@pytest.fixture
def slots():
    slots = Slots.create()
    yield slots
    slots.close()


def filled(shape, value, dtype="float32"):
    return (np.arange(np.prod(shape)) % 100 + value).astype(dtype).reshape(shape)


def joined(slots, batch, *, is_allowed=True):
    """The bytes of the slot out of their parts, how many parts there are, and the bytes as they are without."""
    loose, slot, same = LooseArrays(), slots.get(0), slots.get(1)
    loose.is_allowed = is_allowed
    end = Encoder().encode(batch, slot, 0, loose).end
    assert Encoder().encode(batch, same).end == end
    parts = loose.parts(slot.view().buffer, end)
    return b"".join(part.tobytes() for part in parts), len(parts), bytes(same.view().buffer[:end])


@pytest.mark.parametrize("shape", [LARGE, SMALL])
@pytest.mark.parametrize("is_allowed", [True, False])
def test_the_bytes_are_those_of_the_slot(slots, shape, is_allowed):
    batch = collate([{"x": filled(shape, k), "y": k, "z": filled(LARGE, -k, "int64")} for k in range(5)])
    got, parts, wanted = joined(slots, batch, is_allowed=is_allowed)
    assert got == wanted
    assert parts == (1 if not is_allowed else 12 if shape == LARGE else 7)


@pytest.mark.parametrize(
    "array",
    [
        filled(LARGE, 1).astype("M8[s]"),
        filled(LARGE, 1, [("a", "i4"), ("b", "f8")]),
        filled(LARGE, 1).view(np.memmap),
        filled((40_000, 2), 1).T,
        filled(LARGE, 1)[:, ::2],
    ],
    ids=["dates", "records", "a subclass", "transposed", "with gaps"],
)
def test_whatever_the_array_is(slots, array):
    got, _, wanted = joined(slots, collate([array, array]))
    assert got == wanted


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_tensors(slots, dtype):
    torch = pytest.importorskip("torch")
    tensors = [torch.arange(160_000).reshape(2, -1).to(getattr(torch, dtype)) + k for k in range(3)]
    got, parts, wanted = joined(slots, collate(tensors))
    assert got == wanted
    assert parts == 4
    apart = [tensors[0], tensors[1].requires_grad_()]
    got, parts, wanted = joined(slots, collate(apart))
    assert got == wanted


def test_ragged_arrays_are_an_error_all_the_same(slots):
    loose = LooseArrays()
    loose.is_allowed = True
    with pytest.raises(Exception, match="ragged"):
        Encoder().encode(collate([filled(LARGE, 1), filled((3, 40_000), 1)]), slots.get(0), 0, loose)


def test_what_was_taken_is_let_go_of(slots):
    loose, array = LooseArrays(), filled(LARGE, 1)
    loose.is_allowed = True
    slot = slots.get(0)
    end = Encoder().encode(collate([array]), slot, 0, loose).end
    assert len(loose.parts(slot.view().buffer, end)) == 2
    assert len(loose.parts(slot.view().buffer, end)) == 1
