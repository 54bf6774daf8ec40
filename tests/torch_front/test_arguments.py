"""What the constructor refuses, and what it makes of the rest."""

from __future__ import annotations

import inspect
import multiprocessing

import numpy as np
import pytest

from tests.torch_front.datasets import Numbers, Stream, identity, values

torch = pytest.importorskip("torch", reason="torch is not installed")
data = torch.utils.data

MAP, STREAM = Numbers(), Stream()

REFUSED = {
    "a negative number of workers": (MAP, {"num_workers": -1}, ValueError),
    "a negative timeout": (MAP, {"timeout": -1}, ValueError),
    "prefetch_factor without workers": (MAP, {"prefetch_factor": 2}, ValueError),
    "a negative prefetch_factor": (MAP, {"prefetch_factor": -1, "num_workers": 1}, ValueError),
    "persistent_workers without workers": (MAP, {"persistent_workers": True}, ValueError),
    "a stream and shuffle": (STREAM, {"shuffle": True}, ValueError),
    "a stream and a sampler": (STREAM, {"sampler": range(3)}, ValueError),
    "a stream and an empty sampler": (STREAM, {"sampler": []}, ValueError),
    "a stream and a batch_sampler": (STREAM, {"batch_sampler": [[1]]}, ValueError),
    "a sampler and shuffle": (MAP, {"sampler": range(3), "shuffle": True}, ValueError),
    "a batch_sampler and batch_size": (MAP, {"batch_sampler": [[1]], "batch_size": 2}, ValueError),
    "a batch_sampler and no batch_size": (MAP, {"batch_sampler": [[1]], "batch_size": None}, ValueError),
    "a batch_sampler and shuffle": (MAP, {"batch_sampler": [[1]], "shuffle": True}, ValueError),
    "a batch_sampler and a sampler": (MAP, {"batch_sampler": [[1]], "sampler": range(3)}, ValueError),
    "a batch_sampler and drop_last": (MAP, {"batch_sampler": [[1]], "drop_last": True}, ValueError),
    "drop_last without batches": (MAP, {"batch_size": None, "drop_last": True}, ValueError),
    "drop_last of a stream without batches": (STREAM, {"batch_size": None, "drop_last": True}, ValueError),
    "batch_size 0": (MAP, {"batch_size": 0}, ValueError),
    "batch_size 0 of a stream": (STREAM, {"batch_size": 0}, ValueError),
    "a negative batch_size": (MAP, {"batch_size": -1}, ValueError),
    "batch_size True": (MAP, {"batch_size": True}, ValueError),
    "a fractional batch_size": (MAP, {"batch_size": 2.5}, ValueError),
    "batch_size as text": (MAP, {"batch_size": "2"}, ValueError),
    "drop_last that is no bool": (MAP, {"batch_size": 2, "drop_last": 1}, ValueError),
    "num_workers as text": (MAP, {"num_workers": "2"}, TypeError),
    "num_workers None": (MAP, {"num_workers": None}, TypeError),
    "timeout None": (MAP, {"timeout": None}, TypeError),
    "an unknown start method": (MAP, {"num_workers": 1, "multiprocessing_context": "threads"}, ValueError),
    "a context of another class": (MAP, {"num_workers": 1, "multiprocessing_context": object}, TypeError),
    "a context without workers": (MAP, {"multiprocessing_context": "fork"}, ValueError),
    "an empty dataset and shuffle": ([], {"shuffle": True}, ValueError),
    "a dataset without length and shuffle": (iter([]), {"shuffle": True}, TypeError),
    "an unknown keyword": (MAP, {"batchsize": 2}, TypeError),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_arguments_raise_in_the_constructor(loader_class, case):
    dataset, arguments, kind = REFUSED[case]
    with pytest.raises(kind) as raised:
        loader_class(dataset, **arguments)
    assert type(raised.value) is kind


@pytest.mark.parametrize("case", [case for case in REFUSED if case != "an unknown keyword"])
def test_bad_arguments_are_explained_in_the_same_words(loader_class, case):
    dataset, arguments, kind = REFUSED[case]
    with pytest.raises(kind) as expected:
        data.DataLoader(dataset, **arguments)
    with pytest.raises(kind) as raised:
        loader_class(dataset, **arguments)
    assert str(raised.value) == str(expected.value)


NUMBERS = {
    "NumPy's": {"num_workers": np.int64(2), "prefetch_factor": np.int32(3)},
    "tensors": {"num_workers": torch.tensor(2), "prefetch_factor": torch.tensor(3)},
    "bools": {"num_workers": True, "prefetch_factor": True},
    "an order that is no bool": {"num_workers": 1, "in_order": None},
}


@pytest.mark.parametrize("case", NUMBERS)
def test_numbers_may_be_of_any_kind(loader_class, case):
    assert sorted(values(loader_class(MAP, 5, **NUMBERS[case]))) == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]


def test_a_fraction_of_a_worker_is_refused_when_iterated(loader_class):
    with pytest.raises(TypeError, match="'float' object cannot be interpreted as an integer"):
        iter(loader_class(MAP, num_workers=1.5))


def test_the_dataset_is_required(loader_class):
    with pytest.raises(TypeError):
        loader_class()


def test_what_comes_after_the_generator_needs_a_name(loader_class):
    with pytest.raises(TypeError):
        loader_class(MAP, 1, None, None, None, 0, None, False, False, 0, None, None, None, 2)


def test_arguments_can_be_given_by_position(loader_class):
    generator = torch.Generator()
    loader = loader_class(MAP, 3, True, None, None, 0, identity, False, True, 0, None, None, generator)
    assert (loader.batch_size, loader.drop_last, loader.collate_fn) == (3, True, identity)
    assert loader.generator is generator
    assert loader.sampler.generator is generator


def test_the_signature_begins_with_that_of_torch(loader_class):
    expected = inspect.signature(data.DataLoader.__init__).parameters
    actual = inspect.signature(loader_class.__init__).parameters
    for name, parameter in expected.items():
        assert actual[name].kind is parameter.kind
        assert actual[name].default == parameter.default
    assert [name for name in actual if name in expected] == list(expected)
    assert list(actual)[: len(expected)] == list(expected)


@pytest.mark.parametrize(
    "name", ["batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"]
)
def test_an_attribute_that_cannot_be_set_later(loader_class, name):
    loader = loader_class(MAP)
    with pytest.raises(ValueError, match=f"{name} .*{loader_class.__name__}"):
        setattr(loader, name, getattr(loader, name))


def test_the_error_names_the_users_own_class(loader_class):
    class Mine(loader_class):
        pass

    with pytest.raises(ValueError, match="Mine"):
        Mine(MAP).dataset = []


CHANGED = {
    "num_workers": 1,
    "prefetch_factor": 3,
    "pin_memory": True,
    "timeout": 1.5,
    "worker_init_fn": identity,
    "collate_fn": identity,
    "generator": torch.Generator(),
    "in_order": False,
    "anything": "else",
}


@pytest.mark.parametrize("name", CHANGED)
def test_an_attribute_that_can_be_set_later(loader_class, name):
    loader = loader_class(MAP)
    setattr(loader, name, CHANGED[name])
    assert getattr(loader, name) is CHANGED[name]


DEFAULTS = {
    "batch_size": 1,
    "num_workers": 0,
    "prefetch_factor": None,
    "pin_memory": False,
    "pin_memory_device": "",
    "drop_last": False,
    "timeout": 0,
    "worker_init_fn": None,
    "multiprocessing_context": None,
    "generator": None,
    "persistent_workers": False,
    "in_order": True,
    "dataset": MAP,
    "collate_fn": data.default_collate,
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_an_attribute_that_was_not_given_has_its_default(loader_class, name):
    assert getattr(loader_class(MAP), name) is DEFAULTS[name]


def test_workers_prefetch_two_batches_by_default(loader_class):
    assert loader_class(MAP, num_workers=1).prefetch_factor == 2


def test_a_sampler_is_made_for_a_map_style_dataset(loader_class):
    loader = loader_class(MAP, batch_size=4)
    assert type(loader.sampler) is data.SequentialSampler
    assert type(loader.batch_sampler) is data.BatchSampler
    assert loader.batch_sampler.sampler is loader.sampler
    assert (loader.batch_sampler.batch_size, loader.batch_sampler.drop_last) == (4, False)


def test_shuffle_makes_a_random_sampler_of_the_generator(loader_class):
    generator = torch.Generator()
    loader = loader_class(MAP, shuffle=True, generator=generator)
    assert type(loader.sampler) is data.RandomSampler
    assert loader.sampler.generator is generator


def test_without_batches_there_is_no_batch_sampler(loader_class):
    loader = loader_class(MAP, batch_size=None)
    assert (loader.batch_size, loader.batch_sampler, loader.drop_last) == (None, None, False)
    assert loader.collate_fn is data.default_convert


def test_with_a_batch_sampler_there_is_no_batch_size(loader_class):
    batches = [[1, 2]]
    loader = loader_class(MAP, batch_sampler=batches)
    assert loader.batch_sampler is batches
    assert (loader.batch_size, loader.drop_last) == (None, False)
    assert type(loader.sampler) is data.SequentialSampler


@pytest.mark.parametrize("shuffle", [False, None])
def test_a_stream_may_say_that_it_is_not_shuffled(loader_class, shuffle):
    assert values(loader_class(Stream(3), batch_size=3, shuffle=shuffle)) == [[0, 1, 2]]


def test_a_start_method_becomes_a_context(loader_class):
    loader = loader_class(MAP, num_workers=1, multiprocessing_context="fork")
    assert isinstance(loader.multiprocessing_context, multiprocessing.context.BaseContext)
    assert loader.multiprocessing_context.get_start_method() == "fork"


@pytest.mark.parametrize(("value", "kind"), [("threads", ValueError), (object, TypeError)])
def test_a_context_set_later_is_checked_as_well(loader_class, value, kind):
    loader = loader_class(MAP, num_workers=1)
    with pytest.raises(kind):
        loader.multiprocessing_context = value


def test_more_workers_than_cores_are_warned_of(loader_class):
    with pytest.warns(UserWarning, match="will create 999 worker"):
        loader_class(MAP, num_workers=999)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # torch's half-made iterator
def test_prefetch_factor_0_is_refused_when_workers_would_start(loader_class):
    loader = loader_class(MAP, num_workers=1, prefetch_factor=0)
    with pytest.raises(AssertionError, match="prefetch_factor"):
        iter(loader)


def test_a_timeout_without_workers_is_refused_when_iterated(loader_class):
    loader = loader_class(MAP, timeout=1)
    with pytest.raises(AssertionError, match="timeout"):
        iter(loader)


@pytest.mark.parametrize("name", ["_dataset_kind", "_auto_collation", "_IterableDataset_len_called", "_iterator"])
@pytest.mark.parametrize("dataset", [MAP, STREAM], ids=["map", "stream"])
def test_private_names_that_others_look_at_are_there(loader_class, dataset, name):
    assert getattr(loader_class(dataset), name) == getattr(data.DataLoader(dataset), name)


def test_the_index_sampler_is_the_one_that_is_iterated(loader_class):
    loader = loader_class(MAP)
    assert loader._index_sampler is loader.batch_sampler
    loader = loader_class(MAP, batch_size=None)
    assert loader._index_sampler is loader.sampler


def test_it_is_a_loader_of_torch(loader_class):
    assert issubclass(loader_class, data.DataLoader)
    assert isinstance(loader_class(MAP), data.DataLoader)


def test_the_class_can_be_subscripted(loader_class):
    assert values(loader_class[int](Numbers(2))) == [[0], [1]]


def test_a_subclass_has_arguments_and_attributes_of_its_own(loader_class):
    class Mine(loader_class):
        def __init__(self, *args, name, **kwargs):
            self.name = name
            super().__init__(*args, **kwargs)

        def __iter__(self):
            return (batch * 2 for batch in super().__iter__())

    mine = Mine(Numbers(4), 2, name="x")
    assert mine.name == "x"
    assert values(mine) == [[0, 2], [4, 6]]


def test_pinned_memory_without_an_accelerator_is_warned_of(loader_class):
    loader = loader_class(Numbers(2), pin_memory=True)
    with pytest.warns(UserWarning, match="pin_memory"):
        assert values(loader) == [[0], [1]]


def test_a_device_for_pinned_memory_is_warned_of(loader_class):
    loader = loader_class(Numbers(2), pin_memory=True, pin_memory_device="cuda")
    with pytest.warns(UserWarning, match="pin_memory_device"), pytest.warns(UserWarning, match="no accelerator"):
        iter(loader)
