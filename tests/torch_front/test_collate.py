"""Batches made by default_collate, type by type, are those of torch; in this process and in workers."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pytest

from tests.torch_front.datasets import Held, Stream, identity
from tests.torch_front.sameness import assert_same
from tests.torch_front.samples import COLLATED, REFUSED, REFUSED_BY_ACCIDENT, SENDABLE, SPECIAL, UNSENDABLE, Own, Point

torch = pytest.importorskip("torch", reason="torch is not installed")
data = torch.utils.data

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*not writable:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*Quantized:UserWarning"),
]


def collated(kind, samples, workers, **arguments):
    (batch,) = kind(Held(samples), batch_size=len(samples), num_workers=workers, **arguments)
    return batch


@pytest.mark.parametrize("name", SENDABLE)
def test_samples_are_collated_in_workers(loader_class, name):
    samples = COLLATED[name]
    assert_same(collated(loader_class, samples, 1), data.default_collate(samples))


@pytest.mark.parametrize("name", COLLATED)
def test_samples_are_collated_inline(loader_class, name):
    samples = COLLATED[name]
    assert_same(collated(loader_class, samples, 0), data.default_collate(samples))


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", SENDABLE)
def test_single_samples_are_collated(loader_class, name):
    sample = COLLATED[name][0]
    expected = data.default_collate([sample])
    (batch,) = loader_class(Held([sample]), num_workers=1)
    assert_same(batch, expected)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", SENDABLE)
def test_samples_of_streams_are_collated(loader_class, name):
    class Given(data.IterableDataset):
        def __iter__(self):
            return iter(COLLATED[name])

    (batch,) = loader_class(Given(), batch_size=3, num_workers=1)
    assert_same(batch, data.default_collate(COLLATED[name]))


@pytest.mark.parametrize("name", SPECIAL)
def test_special_tensors_are_collated_as_torch_does_it(loader_class, num_workers, name):
    if num_workers and name in UNSENDABLE:
        pytest.skip("torch's workers cannot send it")

    def run(kind):
        try:
            return collated(kind, SPECIAL[name], num_workers)
        except Exception as error:
            return type(error)

    assert_same(run(loader_class), run(data.DataLoader))


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_collated_raises_as_torch_does(loader_class, num_workers, name):
    if num_workers and name in REFUSED_BY_ACCIDENT:
        pytest.skip("torch's own error is an accident")
    samples = REFUSED[name]
    with pytest.raises(Exception) as expected:
        data.default_collate(samples)
    with pytest.raises(expected.type) as raised:
        collated(loader_class, samples, num_workers)
    assert raised.type is expected.type
    assert str(expected.value).splitlines()[0] in str(raised.value)


def test_the_type_that_cannot_be_collated_is_named(loader_class, num_workers):
    with pytest.raises(TypeError, match=r"default_collate: batch must contain .* found <class 'NoneType'>"):
        collated(loader_class, [{"a": None}], num_workers)


MISFITS = [[{"a": None}], [3, "a"], [torch.ones(2), torch.ones(3)], [np.ones(2), np.ones(3)], [torch.tensor(1), 1]]


@pytest.mark.filterwarnings("ignore:Sparse .* tensor support is in beta")
@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr", "to_sparse_csc", "to_mkldnn"])
def test_tensors_of_other_layouts_are_refused_in_torchs_words(loader_class, layout):
    told_in_torchs_words_alone(loader_class, [getattr(torch.eye(2), layout)()] * 2)


@pytest.mark.parametrize("samples", MISFITS, ids=repr)
def test_an_error_of_collation_in_a_worker_is_told_in_torchs_words_alone(loader_class, samples):
    told_in_torchs_words_alone(loader_class, samples)


def told_in_torchs_words_alone(loader_class, samples):
    with pytest.raises(Exception) as expected:
        collated(data.DataLoader, samples, 1)
    with pytest.raises(expected.type) as raised:
        collated(loader_class, samples, 1)
    ours, theirs = ([line for line in str(one.value).splitlines() if line[:1] != " "] for one in (raised, expected))
    assert ours == theirs  # also of errors before it, in the handling of which it came up


def test_lists_of_different_lengths_are_explained(loader_class, num_workers):
    with pytest.raises(RuntimeError, match="each element in list of batch should be of equal size"):
        collated(loader_class, [[1], [1, 2]], num_workers)


@pytest.mark.parametrize("as_arrays", [False, True])
@pytest.mark.parametrize(
    "dtypes",
    [
        (torch.float32, torch.int64),
        (torch.int64, torch.float32),
        (torch.float32, torch.float64),
        (torch.bool, torch.int8),
    ],
)
def test_tensors_of_different_dtypes_are_collated_as_torch_does_it(loader_class, num_workers, dtypes, as_arrays):
    samples = [torch.ones(2, dtype=dtype) for dtype in dtypes]
    samples = [sample.numpy() for sample in samples] if as_arrays else samples

    def run(kind):
        try:
            return collated(kind, samples, num_workers)
        except Exception as error:
            return type(error)

    assert_same(run(loader_class), run(data.DataLoader))


def test_a_tensor_that_requires_grad_inline_stays_in_the_graph(loader_class):
    weight = torch.ones(2, requires_grad=True)
    batch = collated(loader_class, [weight * 1, weight * 2], 0)
    assert batch.requires_grad
    batch.sum().backward()
    assert weight.grad.tolist() == [3, 3]


def test_a_leaf_that_requires_grad_cannot_be_collated_in_a_worker(loader_class):
    samples = [torch.ones(2, requires_grad=True) for _ in range(2)]

    def run(kind):
        try:
            return collated(kind, samples, 1)
        except Exception as error:
            return type(error)

    assert_same(run(loader_class), run(data.DataLoader))


def test_tensors_that_require_grad_travel_without_collation(loader_class):
    leaf = torch.ones(2, requires_grad=True)
    batch = collated(loader_class, [leaf], 1, collate_fn=identity)
    assert_same(batch, [leaf])


ROWS = {
    "arrays": lambda k: np.full(3, k),
    "array and number": lambda k: (np.full(3, k, np.float32), k),
    "array and text": lambda k: {"x": np.full((2, 5), k), "label": f"label {k}"},
    "array and caption": lambda k: (np.full(3, k), {"caption": f"label {k}"}),
    "tensor and number": lambda k: (torch.full((3,), k), k),
    "tensor and label": lambda k: [torch.full((3,), k, dtype=torch.bfloat16), torch.tensor(k)],
    "array and number of numpy": lambda k: (np.full(3, k), np.int64(k), np.bool_(k % 2)),
    "namedtuples": lambda k: Point(np.full(3, k), f"label {k}"),
    "ragged": lambda k: (np.full(k, k), torch.zeros(k, 2), k),
    "mixed": lambda k: (np.full(3, k), k) if k % 2 else {"x": np.full(3, k)},
    "other containers": lambda k: (np.full(3, k), OrderedDict(b=k, a=Point(k, torch.ones(2)))),
    "default dicts": lambda k: (np.full(3, k), defaultdict(list, a=[k])),
    "axes in another order": lambda k: (torch.full((1, 2, 2, 2), k).to(memory_format=torch.channels_last), k),
    "asking for gradients": lambda k: (torch.full((3,), float(k), requires_grad=bool(k % 2)), k),
    "sets": lambda k: {k, k + 1},
    "dates": lambda k: {"a": None, "at": date(2024, 1, 1 + k % 28), "n": k},
    "decimals": lambda k: (Decimal(k) / 7, datetime(2024, 1, 1, 1, k)),
}


@pytest.mark.parametrize("name", ROWS)
def test_samples_that_are_left_as_they_are_come_out_as_they_are(loader_class, num_workers, name):
    samples = [ROWS[name](k) for k in range(40)]
    batches = list(loader_class(Held(samples), batch_size=10, num_workers=num_workers, collate_fn=identity))
    assert_same(batches, [samples[k : k + 10] for k in range(0, 40, 10)])


class Custom:
    """Not one of the types that torch knows."""

    def __init__(self, value):
        self.value = value


def collate_custom(batch, *, collate_fn_map=None):
    return torch.tensor([sample.value for sample in batch]) * 10


def collate_texts(batch, *, collate_fn_map=None):
    return "+".join(batch)


def collate_tensors(batch, *, collate_fn_map=None):
    return torch.cat(batch)


@pytest.fixture
def collations(monkeypatch):
    """Entries that the user adds."""
    known = data._utils.collate.default_collate_fn_map

    def add(kind, function):
        monkeypatch.setitem(known, kind, function)

    return add


def test_an_entry_for_a_class_of_the_users_is_used(loader_class, num_workers, collations):
    collations(Custom, collate_custom)
    assert_same(collated(loader_class, [Custom(1), Custom(2)], num_workers), torch.tensor([10, 20]))


def test_an_entry_is_used_within_containers(loader_class, num_workers, collations):
    collations(Custom, collate_custom)
    samples = [{"a": (Custom(1), 5)}, {"a": (Custom(2), 6)}]
    expected = {"a": [torch.tensor([10, 20]), torch.tensor([5, 6])]}
    assert_same(collated(loader_class, samples, num_workers), expected)


def test_an_entry_serves_subclasses(loader_class, num_workers, collations):
    class Derived(Custom):
        pass

    collations(Custom, collate_custom)
    assert_same(collated(loader_class, [Derived(1), Derived(2)], num_workers), torch.tensor([10, 20]))


def test_an_entry_may_replace_that_of_a_known_type(loader_class, num_workers, collations):
    collations(str, collate_texts)
    assert collated(loader_class, ["a", "b"], num_workers) == "a+b"


def test_an_entry_may_replace_that_of_tensors(loader_class, num_workers, collations):
    collations(torch.Tensor, collate_tensors)
    assert_same(collated(loader_class, [torch.ones(2), torch.zeros(3)], num_workers), torch.tensor([1.0, 1, 0, 0, 0]))


def test_an_entry_for_numbers_is_used(loader_class, num_workers, collations):
    collations(int, lambda batch, *, collate_fn_map=None: sum(batch))
    assert_same(
        collated(loader_class, [(1, 2.0), (3, 4.0)], num_workers), [4, torch.tensor([2.0, 4.0], dtype=torch.float64)]
    )


def test_an_entry_for_a_tensor_class_is_used(loader_class, num_workers, collations):
    collations(Own, lambda batch, *, collate_fn_map=None: len(batch))
    assert collated(loader_class, [torch.ones(2).as_subclass(Own)] * 2, num_workers) == 2


def test_an_entry_added_after_the_loader_was_made_is_used(loader_class, num_workers, collations):
    loader = loader_class(Held([Custom(1)]), num_workers=num_workers)
    collations(Custom, collate_custom)
    assert_same(list(loader), [torch.tensor([10])])


def test_default_collate_can_be_called_in_a_collate_fn(loader_class, num_workers):
    def collate(batch):
        return "first", data.default_collate(batch)

    assert_same(collated(loader_class, [1, 2], num_workers, collate_fn=collate), ("first", torch.tensor([1, 2])))


def test_default_collate_given_by_name_is_the_default(loader_class, num_workers):
    batch = collated(loader_class, [(1, "a"), (2, "b")], num_workers, collate_fn=data.default_collate)
    assert_same(batch, [torch.tensor([1, 2]), ("a", "b")])


def test_texts_of_the_top_level_come_as_a_list_and_others_as_a_tuple(loader_class, num_workers):
    assert_same(collated(loader_class, ["a", "b"], num_workers), ["a", "b"])
    assert_same(collated(loader_class, [{"t": "a"}, {"t": "b"}], num_workers), {"t": ["a", "b"]})
    assert_same(collated(loader_class, [("a",), ("b",)], num_workers), [("a", "b")])


def test_batches_of_many_samples(loader_class, num_workers):
    samples = [(torch.full((3,), index), index, Point(index, str(index))) for index in range(300)]
    assert_same(collated(loader_class, samples, num_workers), data.default_collate(samples))


def test_the_first_sample_may_be_handed_on_changed_but_is_not_changed_itself(loader_class):
    samples = [{"a": 1, "b": [1]}, {"a": 2, "b": [2]}]
    collated(loader_class, samples, 0)
    assert samples == [{"a": 1, "b": [1]}, {"a": 2, "b": [2]}]


def test_each_batch_of_a_stream_is_collated_for_itself(loader_class, num_workers):
    batches = list(loader_class(Stream(5), batch_size=2, num_workers=num_workers))
    expected = [torch.tensor([0, 1]), torch.tensor([2, 3]), torch.tensor([4])]
    assert_same(batches, [batch for batch in expected for _ in range(max(1, num_workers))])


def test_shapes_may_differ_from_batch_to_batch(loader_class, num_workers):
    samples = [torch.full((size,), size) for size in [1, 1, 5, 5, 2, 2, 7, 7]]
    batches = list(loader_class(Held(samples), batch_size=2, num_workers=num_workers))
    assert_same(batches, [torch.full((2, size), size) for size in [1, 5, 2, 7]])


def test_types_may_differ_from_batch_to_batch(loader_class, num_workers):
    samples = [1, 2.5, "a", torch.ones(2), {"a": 1}, (1, 2), True, b"x"]
    batches = list(loader_class(Held(samples), num_workers=num_workers))
    assert_same(batches, [data.default_collate([sample]) for sample in samples])
