"""``collate(like="torch")`` gives what torch's ``default_collate`` gives, and ``fetch`` what the dataset does."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="torch is not installed")

import stoker  # noqa: E402
from stoker.memory import Decoder, Encoder, Slots  # noqa: E402
from tests.torch_front.sameness import assert_same  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # torch has several to say of samples that do not fit together
default_collate = torch.utils.data.default_collate
Pair = namedtuple("Pair", "x y")

LEAVES = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(max_size=3),
    st.binary(max_size=3),
    st.sampled_from([np.float32(1.5), np.int64(3), np.uint8(2), np.bool_(True)]),
    st.sampled_from([np.zeros(3), np.ones((2, 2), np.float32), np.array(4), np.zeros((1, 3), np.int16)]),
    st.sampled_from([torch.zeros(3), torch.ones(2, 2, dtype=torch.bfloat16), torch.tensor(4), torch.zeros(0, 3)]),
)
SAMPLES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.builds(Pair, inner, inner),
        st.dictionaries(st.sampled_from("ab"), inner, max_size=2).map(OrderedDict),
    ),
    max_leaves=6,
)


def result_or_error(function, samples):
    try:
        return function(samples), None
    except Exception as error:
        return None, type(error)


@given(SAMPLES, st.integers(1, 3))
def test_samples_that_are_alike(sample, count):
    found = result_or_error(lambda samples: stoker.collate(samples, like="torch"), [sample] * count)
    wanted = result_or_error(default_collate, [sample] * count)
    assert found[1] == wanted[1]
    assert_same(found[0], wanted[0])


@given(SAMPLES, SAMPLES)
def test_samples_that_differ(one, other):
    found = result_or_error(lambda samples: stoker.collate(samples, like="torch"), [one, other])
    wanted = result_or_error(default_collate, [one, other])
    assert found[1] == wanted[1]
    assert_same(found[0], wanted[0])


def test_a_worker_stacks_straight_into_shared_memory():
    def work(number):
        return stoker.collate([(number, np.full(3, number), "a"), (number, np.zeros(3), "b")], like="torch", copy=False)

    with stoker.stream(work, range(5), workers=1) as results:
        for number, found in enumerate(results):
            wanted = default_collate([(number, np.full(3, number), "a"), (number, np.zeros(3, int), "b")])
            assert_same(found[2], wanted[2])
            assert found[0].tolist() == [number] * 2


TENSORS = [
    *(torch.full(shape, 2, dtype=kind) for shape in [(3,), (1, 3), (), (0,)] for kind in (torch.int64, torch.float32)),
    *(torch.zeros(3, dtype=torch.int32), torch.zeros(3, dtype=torch.bfloat16), torch.zeros(3, requires_grad=True)),
    *(torch.zeros(3).to_sparse(), torch.zeros(3, 2).T, torch.nn.Parameter(torch.ones(3))),
    *(np.zeros(3), 2, "a"),
]


def through_a_slot(batch):
    slots = Slots.create()
    try:
        slot = slots.get(0)
        packed = Encoder().encode(batch, slot)
        root = np.frombuffer(slot.view().buffer, np.uint8, packed.nbytes, packed.offset)
        return Decoder().decode(packed, slot.view(), root)
    finally:
        slots.close()


@given(st.lists(st.sampled_from(TENSORS), min_size=2, max_size=3), st.sampled_from(TENSORS[:4]))
def test_samples_that_are_not_looked_at_beforehand_give_what_torch_gives_in_a_worker(leaves, usual):
    samples = [(usual, leaf, {"x": usual}) for leaf in leaves]
    with mock.patch.object(torch.utils.data._utils.worker, "_worker_info", "as in one"):
        wanted = result_or_error(default_collate, samples)
        found = result_or_error(
            lambda samples: through_a_slot(
                [stoker.collate(samples, like="torch", copy=False, otherwise=lambda: default_collate(samples)), 7]
            ),
            samples,
        )
    assert found[1] == wanted[1]
    assert_same(found[0], None if wanted[1] else [wanted[0], 7])


def test_what_takes_the_place_of_a_batch_that_cannot_be_stacked_takes_that_of_no_other():
    def work(number):
        torn = [(torch.zeros(3), number), (torch.zeros(3 + (number == 1)), number)]
        batches = [torn, [(torch.ones(3), 5)]]
        return [stoker.collate(one, like="torch", copy=False, otherwise=lambda: "torn") for one in batches]

    with stoker.stream(work, range(3), workers=1) as results:
        found = list(results)
    assert [batch[0] == "torn" for batch in found] == [False, True, False]
    for number in (0, 2):
        assert_same(found[number][0], [torch.zeros(2, 3), torch.tensor([number, number])])
    for batch in found:
        assert_same(batch[1], [torch.ones(1, 3), torch.tensor([5])])


@pytest.mark.parametrize("arguments", [{"copy": True, "like": "torch"}, {"copy": False}])
def test_what_is_looked_at_needs_no_substitute(arguments):
    with pytest.raises(ValueError, match='pass like="torch" and copy=False'):
        stoker.collate([1], otherwise=list, **arguments)


def test_another_library_is_an_error():
    with pytest.raises(ValueError, match="like='jax': pass \"torch\""):
        stoker.collate([1], like="jax")


class Asked:
    """Has a quicker way for many."""

    def __getitem__(self, index):
        return index

    def __getitems__(self, indices):
        return [("together", index) for index in indices]


def test_fetch_asks_in_the_quickest_way():
    assert stoker.fetch("abcdef", [5, 0]) == ["f", "a"]
    assert stoker.fetch({"x": 1}, ["x"]) == [1]
    assert stoker.fetch(Asked(), [2, 3]) == [("together", 2), ("together", 3)]
    rows = torch.utils.data.TensorDataset(torch.arange(10), torch.rand(10, 2))
    chosen = [7, 1, 3, 3, 9]
    assert_same(stoker.collate(stoker.fetch(rows, chosen), like="torch"), default_collate([rows[k] for k in chosen]))
