"""Map-style datasets: which indices are asked for, in which form, and how batches are made."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tests.torch_front.datasets import Endless, Held, Numbers, Recorded, identity, numbers, values
from tests.torch_front.sameness import assert_same

torch = pytest.importorskip("torch", reason="torch is not installed")
data = torch.utils.data


class Asked(Numbers):
    """What it has been asked for."""

    def __getitem__(self, index):
        return index


class Several(Numbers):
    """Gives samples by the batch."""

    def __getitem__(self, index):
        raise AssertionError("asked for a single sample")

    def __getitems__(self, indices):
        return [(index, len(indices)) for index in indices]


class MaybeSeveral(Numbers):
    """Has the name, but not the ability."""

    __getitems__ = None


class Rows(Numbers):
    """Takes several indices at once, as arrays do."""

    def __getitem__(self, index):
        return torch.arange(self.count)[index] * 10


@pytest.mark.parametrize(
    ("batch_size", "drop_last", "batches"),
    [
        (3, False, [[0, 1, 2], [3, 4, 5], [6]]),
        (3, True, [[0, 1, 2], [3, 4, 5]]),
        (7, True, [[0, 1, 2, 3, 4, 5, 6]]),
        (8, False, [[0, 1, 2, 3, 4, 5, 6]]),
        (8, True, []),
        (1, False, [[0], [1], [2], [3], [4], [5], [6]]),
    ],
)
def test_batches_in_order(loader_class, num_workers, batch_size, drop_last, batches):
    loader = loader_class(Numbers(7), batch_size=batch_size, drop_last=drop_last, num_workers=num_workers)
    assert values(loader) == batches


def test_an_empty_dataset_gives_no_batch(loader_class, num_workers):
    assert list(loader_class([], batch_size=2, num_workers=num_workers)) == []


def test_fewer_batches_than_workers(loader_class):
    assert values(loader_class(Numbers(2), batch_size=2, num_workers=3)) == [[0, 1]]


def test_without_batches_samples_come_singly(loader_class, num_workers):
    assert_same(list(loader_class(Numbers(3), batch_size=None, num_workers=num_workers)), [0, 1, 2])


def test_without_batches_arrays_become_tensors(loader_class, num_workers):
    loader = loader_class(Held([np.arange(2), np.arange(3)]), batch_size=None, num_workers=num_workers)
    assert_same(list(loader), [torch.arange(2), torch.arange(3)])


def test_without_batches_collate_fn_gets_a_sample(loader_class, num_workers):
    loader = loader_class(Numbers(3), batch_size=None, collate_fn=str, num_workers=num_workers)
    assert list(loader) == ["0", "1", "2"]


def test_collate_fn_gets_a_list_of_samples(loader_class, num_workers):
    loader = loader_class(Numbers(3), batch_size=2, collate_fn=identity, num_workers=num_workers)
    assert_same(list(loader), [[0, 1], [2]])


@pytest.mark.parametrize("result", [None, 5, "text", {"a": (1, [2])}, {1, 2}, ValueError, range(3)], ids=repr)
def test_collate_fn_may_return_anything(loader_class, num_workers, result):
    loader = loader_class(Numbers(2), collate_fn=lambda samples: result, num_workers=num_workers)
    assert_same(list(loader), [result, result])


def test_a_sampler_gives_the_order(loader_class, num_workers):
    loader = loader_class(Numbers(), batch_size=2, sampler=[5, 1, 1, 9, 3], num_workers=num_workers)
    assert values(loader) == [[5, 1], [1, 9], [3]]


def test_drop_last_with_a_sampler(loader_class):
    assert values(loader_class(Numbers(), batch_size=2, sampler=[5, 1, 3], drop_last=True)) == [[5, 1]]


def test_a_sampler_without_batches(loader_class, num_workers):
    assert list(loader_class(Numbers(), batch_size=None, sampler=[5, 1], num_workers=num_workers)) == [5, 1]


def test_a_batch_sampler_gives_the_batches(loader_class, num_workers):
    loader = loader_class(Numbers(), batch_sampler=[[4], [2, 2, 1], [9, 0]], num_workers=num_workers)
    assert values(loader) == [[4], [2, 2, 1], [9, 0]]


@pytest.mark.parametrize("form", [tuple, list, np.array, torch.tensor], ids=lambda form: form.__name__)
def test_a_batch_of_indices_may_be_any_iterable(loader_class, num_workers, form):
    loader = loader_class(Numbers(), batch_sampler=[form([4, 2]), form([1])], num_workers=num_workers)
    assert [[int(value) for value in batch] for batch in loader] == [[4, 2], [1]]


def test_an_empty_batch_of_indices_reaches_collate_fn(loader_class, num_workers):
    loader = loader_class(Numbers(), batch_sampler=[[1], []], collate_fn=identity, num_workers=num_workers)
    assert list(loader) == [[1], []]


@pytest.mark.parametrize(
    "index", [3, "key", (1, 2), 2.5, None, slice(1, 3), np.int64(4), torch.tensor(3), frozenset([1])], ids=repr
)
def test_an_index_reaches_the_dataset_as_the_sampler_gave_it(loader_class, num_workers, index):
    loader = loader_class(Asked(), batch_size=2, sampler=[index], collate_fn=identity, num_workers=num_workers)
    assert_same(list(loader), [[index]])


def test_a_batch_sampler_as_sampler_gives_lists_of_indices(loader_class, num_workers):
    sampler = data.BatchSampler(data.SequentialSampler(range(5)), batch_size=2, drop_last=False)
    loader = loader_class(Rows(5), batch_size=None, sampler=sampler, num_workers=num_workers)
    assert values(loader) == [[0, 10], [20, 30], [40]]


def test_a_dataset_may_give_samples_by_the_batch(loader_class, num_workers):
    loader = loader_class(Several(5), batch_size=3, num_workers=num_workers)
    assert [(i.tolist(), n.tolist()) for i, n in loader] == [([0, 1, 2], [3, 3, 3]), ([3, 4], [2, 2])]


@pytest.mark.parametrize(
    ("together", "batches"),
    [
        (lambda indices: tuple(f"text {index}" for index in indices), [("text 0", "text 1"), ("text 2",)]),
        (lambda indices: [f"text {index}" for index in indices], [["text 0", "text 1"], ["text 2"]]),
        (lambda indices: torch.tensor(indices).unbind(), [torch.tensor([0, 1]), torch.tensor([2])]),
        (
            lambda indices: tuple((index, "a") for index in indices),
            [[torch.tensor([0, 1]), ("a", "a")], [torch.tensor([2]), ("a",)]],
        ),
    ],
    ids=["texts in a tuple", "texts in a list", "tensors in a tuple", "pairs in a tuple"],
)
def test_samples_by_the_batch_may_be_in_a_tuple(loader_class, num_workers, together, batches):
    dataset = Several(3)
    dataset.__getitems__ = together
    assert_same(list(loader_class(dataset, batch_size=2, num_workers=num_workers)), batches)


def test_a_dataset_whose_getitems_is_none_gives_them_singly(loader_class, num_workers):
    assert values(loader_class(MaybeSeveral(3), batch_size=2, num_workers=num_workers)) == [[0, 1], [2]]


def test_without_batches_getitems_is_not_used(loader_class, num_workers):
    with pytest.raises(AssertionError, match="single sample"):
        list(loader_class(Several(2), batch_size=None, num_workers=num_workers))


@pytest.mark.parametrize("kind", [list, tuple, range, np.arange, torch.arange, bytes], ids=lambda kind: kind.__name__)
def test_anything_with_getitem_and_len_is_a_dataset(loader_class, num_workers, kind):
    dataset = kind(range(5)) if kind in (list, tuple, bytes) else kind(5)
    assert values(loader_class(dataset, batch_size=3, num_workers=num_workers)) == [[0, 1, 2], [3, 4]]


def test_a_dict_is_a_dataset_for_a_sampler_of_its_keys(loader_class, num_workers):
    loader = loader_class({"a": 1, "b": 2}, batch_size=2, sampler=["b", "a"], num_workers=num_workers)
    assert values(loader) == [[2, 1]]


def test_a_text_is_a_dataset_of_letters(loader_class, num_workers):
    assert list(loader_class("abc", batch_size=2, num_workers=num_workers)) == [["a", "b"], ["c"]]


COMPOSED = {
    "TensorDataset": lambda: data.TensorDataset(torch.arange(6).reshape(3, 2), torch.tensor([1.0, 2.0, 3.0])),
    "Subset": lambda: data.Subset(Numbers(), [7, 3, 5]),
    "ConcatDataset": lambda: data.ConcatDataset([Numbers(2), Held([7, 8])]),
    "StackDataset": lambda: data.StackDataset(Numbers(3), Held([7, 8, 9])),
    "StackDataset of names": lambda: data.StackDataset(a=Numbers(3), b=Held([7, 8, 9])),
    "Subset of a TensorDataset": lambda: data.Subset(data.TensorDataset(torch.arange(6) * 2), [1, 5, 3]),
    "random_split": lambda: data.random_split(Numbers(), [6, 4], generator=torch.Generator().manual_seed(1))[0],
    "Subset that gives batches": lambda: data.Subset(Several(9), [2, 4, 6]),
}


@pytest.mark.parametrize("name", COMPOSED)
def test_datasets_of_torch(loader_class, num_workers, name):
    expected = list(data.DataLoader(COMPOSED[name](), batch_size=2))
    actual = list(loader_class(COMPOSED[name](), batch_size=2, num_workers=num_workers))
    assert_same(actual, expected)


def test_shuffling_loses_and_repeats_nothing(loader_class, num_workers):
    loader = loader_class(Numbers(50), batch_size=8, shuffle=True, num_workers=num_workers)
    epochs = [numbers(loader) for _ in range(2)]
    for epoch in epochs:
        assert Counter(epoch) == Counter(range(50))
    assert epochs[0] != epochs[1]


def test_a_map_style_dataset_may_have_no_length_if_the_sampler_knows(loader_class, num_workers):
    class Lengthless(data.Dataset):
        def __getitem__(self, index):
            return index

    assert values(loader_class(Lengthless(), batch_size=2, sampler=[3, 1, 2], num_workers=num_workers)) == [[3, 1], [2]]


def test_an_endless_sampler_is_read_as_far_as_needed(loader_class, num_workers):
    iterator = iter(loader_class(Numbers(3), batch_size=2, sampler=Endless(3), num_workers=num_workers))
    assert values(next(iterator) for _ in range(4)) == [[0, 1], [2, 0], [1, 2], [0, 1]]


def test_each_epoch_asks_the_sampler_anew(loader_class, num_workers):
    sampler = Recorded([4, 2])
    loader = loader_class(Numbers(), batch_size=1, sampler=sampler, num_workers=num_workers)
    assert values(loader) == values(loader) == [[4], [2]]
    assert [entry for entry in sampler.log if entry != "start"] == [4, 2, "end"] * 2


def test_an_iterator_as_sampler_serves_one_epoch(loader_class):
    loader = loader_class(Numbers(), sampler=iter([3, 1]))
    assert values(loader) == [[3], [1]]
    assert values(loader) == []


def test_the_loader_set_to_other_workers_uses_them(loader_class):
    loader = loader_class(Numbers(4), batch_size=2)
    first = values(loader)
    loader.num_workers, loader.prefetch_factor = 2, 1
    assert values(loader) == first


def test_a_collate_fn_set_later_is_used(loader_class, num_workers):
    loader = loader_class(Numbers(2), batch_size=2, num_workers=num_workers)
    list(loader)
    loader.collate_fn = identity
    assert list(loader) == [[0, 1]]
