"""A change of anything that a dataset holds is noticed; what has not changed looks the same each time."""

from __future__ import annotations

import copy
import gc
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.plan import Plan
from stoker.sources import IndexedSource
from stoker.workers.snapshot import Contents
from stoker.workers.worker import Job
from tests.datasets import Pair, Record


class Held:
    def __init__(self, samples):
        self.samples = samples

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        return self.samples[index]


def job_of(samples):
    return Job(IndexedSource.of(Held(samples)), Plan(len(samples), 2), None, skip_errors=False)


def write_last(array):
    array[(-1,) * array.ndim] = np.array(1).astype(array.dtype)


ARRAYS = {
    "numbers": lambda: np.zeros(5, np.float32),
    "many numbers": lambda: np.zeros(2**15, np.float32),
    "none but one": lambda: np.zeros((1, 1)),
    "no axes": lambda: np.array(0),
    "in Fortran's order": lambda: np.zeros((3, 4), order="F"),
    "every other row": lambda: np.zeros((6, 4))[::2],
    "turned round": lambda: np.zeros(5)[::-1],
    "dates": lambda: np.zeros(3, "M8[s]"),
    "every other date": lambda: np.zeros(6, "M8[s]")[::2],
    "booleans": lambda: np.zeros(3, bool),
    "half floats": lambda: np.zeros(3, np.float16),
    "big-endian": lambda: np.zeros(3, ">i4"),
}


@pytest.mark.parametrize("count", [4, 100])
@pytest.mark.parametrize("make", ARRAYS.values(), ids=ARRAYS)
def test_a_write_into_an_array_of_a_list_is_noticed(make, count):
    job = job_of([make() for _ in range(count)])
    seen = Contents(job)
    assert not seen.differs(job)
    write_last(job.source.dataset.samples[2])
    assert seen.differs(job)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "bool", "complex64"])
def test_a_write_into_a_tensor_of_a_list_is_noticed(dtype):
    torch = pytest.importorskip("torch")
    whole = torch.zeros(4, 6, dtype=getattr(torch, dtype))
    job = job_of([*whole, whole.clone()[:, ::2], torch.zeros((), dtype=getattr(torch, dtype))])
    seen = Contents(job)
    assert not seen.differs(job)
    whole[2, 3] = 1
    assert seen.differs(job)


@pytest.mark.parametrize("kind", ["parameter", "of a class", "made in inference mode"])
def test_a_write_past_torchs_own_count_of_them_is_noticed(kind):
    torch = pytest.importorskip("torch")

    class Own(torch.Tensor):
        pass

    with torch.inference_mode(kind == "made in inference mode"):
        tensor = torch.zeros(4).as_subclass(Own) if kind == "of a class" else torch.nn.Parameter(torch.zeros(4))
    job = job_of([tensor])
    seen = Contents(job)
    assert not seen.differs(job)
    with torch.inference_mode(kind == "made in inference mode"):
        tensor.data[3] = 1  # as averages of a model's weights are kept
    assert seen.differs(job)


def test_a_tensor_of_another_type_with_the_same_bytes_is_noticed():
    torch = pytest.importorskip("torch")
    job = job_of([torch.zeros(4, dtype=torch.int16)])
    seen = Contents(job)
    job.source.dataset.samples[0] = torch.zeros(4, dtype=torch.bfloat16)
    assert seen.differs(job)


def test_what_is_shared_counts_by_identity_since_workers_see_it_anyway():
    torch = pytest.importorskip("torch")
    job = job_of([torch.zeros(4).share_memory_()])
    seen = Contents(job)
    job.source.dataset.samples[0][1] = 1
    assert not seen.differs(job)
    job.source.dataset.samples[0] = torch.zeros(4).share_memory_()
    assert seen.differs(job)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (np.int64(1), np.int64(2)),
        (np.int64(1), np.int32(1)),
        (np.float64(0.5), 0.5),
        (np.datetime64("2024-01-01"), np.datetime64("2024-01-02")),
        (np.zeros(4, np.int32), np.zeros(4, np.float32)),
        (np.zeros(4), np.zeros((2, 2))),
        (np.array([[0, 1], [2, 3]]), np.array([[0, 2], [1, 3]]).T.copy().T),
        (np.arange(4).reshape(2, 2), np.arange(4).reshape(2, 2).T),
        (np.zeros(0), np.zeros((0, 3))),
        (np.array([None, 1]), np.array([None, 2])),
        (np.zeros(1, [("a", int)]), np.zeros(1, [("b", int)])),
    ],
    ids=repr,
)
def test_another_number_or_array_in_a_list_is_noticed(before, after):
    job = job_of([before, "a text"])
    seen = Contents(job)
    assert not seen.differs(job)
    job.source.dataset.samples[0] = after
    assert seen.differs(job)


def _write(samples):
    samples[70][0][2] = 9


def _assign(samples):
    samples[70] = (samples[70][0] + 1, *samples[70][1:])


def _swap(samples):
    samples[3], samples[4] = samples[4], samples[3]


def _shorten(samples):
    samples.pop()


def _reshape(samples):
    samples[5] = (samples[5][0].reshape(2, 2), *samples[5][1:])


def _retype(samples):
    samples[5] = (samples[5][0].astype(np.uint32), *samples[5][1:])


def _renumber(samples):
    samples[5] = (samples[5][0], float(samples[5][1]), samples[5][2])


def _rename(samples):
    samples[5][2]["name"] = "another"


def _write_deep(samples):
    samples[99][2]["in"][0][1] = 9


def _another_class(samples):
    samples[5] = list(samples[5])


@pytest.mark.parametrize(
    "change",
    [_write, _assign, _swap, _shorten, _reshape, _retype, _renumber, _rename, _write_deep, _another_class],
)
@pytest.mark.parametrize("wrap", [Held, list, lambda samples: Held(Held(samples))], ids=["object", "list", "nested"])
def test_a_change_in_a_long_list_of_samples_is_noticed(change, wrap):
    samples = [(np.full(4, k), k, {"name": f"n{k}", "in": [np.full((2, 2), k)]}) for k in range(100)]
    dataset = wrap(samples)
    samples = dataset if isinstance(dataset, list) else samples
    job = Job(IndexedSource.of(dataset), Plan(len(dataset), 2), None, skip_errors=False)
    seen = Contents(job)
    assert not seen.differs(job)
    change(samples)
    assert seen.differs(job)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64"])
def test_a_change_in_a_long_list_of_tensors_is_noticed(dtype):
    torch = pytest.importorskip("torch")
    whole = torch.zeros(100, 6, dtype=getattr(torch, dtype))
    job = job_of([{"x": row, "y": k} for k, row in enumerate(whole)])
    seen = Contents(job)
    assert not seen.differs(job)
    whole[70, 3] = 1
    assert seen.differs(job)


def test_tensors_that_are_no_plain_memory_are_looked_at_one_by_one():
    torch = pytest.importorskip("torch")
    odd = [torch.ones(3).to_sparse(), torch.ones(3, requires_grad=True), torch.ones(3).share_memory_(), torch.ones(2)]
    for other in odd:
        job = job_of([*(torch.zeros(3) for _ in range(99)), other])
        seen = Contents(job)
        assert not seen.differs(job)
        job.source.dataset.samples[7][1] = 5
        assert seen.differs(job)


def test_what_an_object_keeps_beside_the_fields_of_a_sample_counts():
    samples = [Record(np.zeros(2), k) for k in range(100)]
    job = job_of(samples)
    seen = Contents(job)
    assert not seen.differs(job)
    samples[5].beside = 1
    assert seen.differs(job)


class Locked(Held):
    """Can be reduced, but not pickled."""

    def __init__(self, samples):
        super().__init__(samples)
        self.lock = threading.Lock()


class Refusing(Held):
    def __reduce_ex__(self, protocol):
        raise TypeError("no")


def test_a_long_list_beside_what_cannot_be_pickled_is_looked_at():
    dataset = Locked([np.zeros(2) for _ in range(100)])
    job = Job(IndexedSource.of(dataset), Plan(100, 2), None, skip_errors=False)
    seen = Contents(job)
    assert not seen.differs(job)
    dataset.samples[50][1] = 1
    assert seen.differs(job)
    refusing = Job(IndexedSource.of(Refusing(dataset.samples)), Plan(100, 2), None, skip_errors=False)
    assert not Contents(refusing).differs(refusing)


def test_keys_in_another_order_are_a_change():
    samples = [{"x": np.zeros(2), "y": 0} for _ in range(100)]
    job = job_of(samples)
    seen = Contents(job)
    assert not seen.differs(job)
    samples[50] = {"y": 0, "x": np.zeros(2)}
    assert seen.differs(job)


samples_of_some_form = st.one_of(
    st.builds(np.full, st.sampled_from([(), (3,), (2, 2)]), st.integers(0, 2)),
    st.tuples(st.builds(np.full, st.just(2), st.integers(0, 1)), st.integers(0, 1)),
    st.fixed_dictionaries({"x": st.builds(np.full, st.just((1, 2)), st.integers(0, 1)), "y": st.text(max_size=1)}),
    st.lists(st.builds(np.full, st.just(1), st.booleans()), max_size=2),
    st.builds(Pair, st.builds(np.full, st.just(1), st.integers(0, 1)), st.booleans()),
)


def plainly(sample):
    """A sample as something that can be compared."""
    if isinstance(sample, np.ndarray):
        return sample.dtype.str, sample.shape, sample.tolist()
    if isinstance(sample, dict):
        return [(key, plainly(value)) for key, value in sample.items()]
    return (type(sample), list(map(plainly, sample))) if isinstance(sample, (list, tuple)) else (type(sample), sample)


@given(
    first=samples_of_some_form, others=st.lists(samples_of_some_form, max_size=3), more=samples_of_some_form,
    place=st.integers(0, 80),
)  # fmt: skip
def test_two_lists_look_the_same_just_if_they_are(first, others, more, place):
    before = [copy.deepcopy(first) for _ in range(80)] + others
    after = copy.deepcopy(before)
    after[place % len(after)] = more
    job = job_of(before)
    seen = Contents(job)
    job.source.dataset.samples = after
    assert seen.differs(job) == (list(map(plainly, before)) != list(map(plainly, after)))


class Plain:
    """An object that is pickled one by one."""

    def __init__(self, number):
        self.number = number


@pytest.mark.parametrize("of", ["tensors", "objects"])
def test_a_look_sets_off_no_garbage_collection(of):
    if of == "tensors":
        torch = pytest.importorskip("torch")
        job = job_of([(row, k) for k, row in enumerate(torch.zeros(20_000, 2))])
    else:
        job = job_of([Plain(k) for k in range(20_000)])
    seen, collected = Contents(job), []
    gc.collect()

    def note(phase, info):
        collected.append(info["generation"])

    gc.callbacks.append(note)
    try:
        assert not seen.differs(job)
    finally:
        gc.callbacks.remove(note)
    assert max(collected, default=0) == 0  # at most that of the youngest, as it ends


@pytest.mark.parametrize("is_enabled", [True, False])
def test_the_garbage_collector_is_as_it_was_after_a_look(is_enabled):
    try:
        gc.enable() if is_enabled else gc.disable()
        Contents(job_of([Plain(0)]))
        assert gc.isenabled() is is_enabled
    finally:
        gc.enable()


@pytest.mark.filterwarnings("ignore:.*(nested tensors is in prototype|are deprecated)")
@pytest.mark.parametrize("odd", ["nested", "quantized", "meta", "of a class"])
def test_one_tensor_among_many_that_is_another_kind_does_not_hide_a_change(odd):
    torch = pytest.importorskip("torch")
    other = {
        "nested": lambda: torch.nested.nested_tensor([torch.zeros(3), torch.zeros(3)]),
        "quantized": lambda: torch.quantize_per_tensor(torch.zeros(3), 0.1, 0, torch.quint8),
        "meta": lambda: torch.zeros(3, device="meta"),
        "of a class": lambda: torch.nn.Parameter(torch.zeros(3), requires_grad=False),
    }[odd]()
    job = job_of([*(torch.zeros(3) for _ in range(99)), other])
    seen = Contents(job)
    job.source.dataset.samples[7][1] = 5
    assert seen.differs(job)
