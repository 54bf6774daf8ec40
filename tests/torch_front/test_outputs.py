"""What comes out belongs to the training loop: to keep, to write into, to share and to send on."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

import numpy as np
import pytest

from tests.torch_front.datasets import Held, Numbers, Stream, identity
from tests.torch_front.sameness import assert_same
from tests.torch_front.samples import Own, Point

torch = pytest.importorskip("torch", reason="torch is not installed")
data = torch.utils.data


class Rows(Numbers):
    """Tensors that are told apart, of a size that travels in shared memory."""

    def __init__(self, count=24, size=3000):
        super().__init__(count)
        self.size = size

    def __getitem__(self, index):
        return torch.full((self.size,), float(index))


class ArrayRows(Rows):
    def __getitem__(self, index):
        return np.full((self.size,), float(index))


@pytest.mark.parametrize("size", [1, 3000, 100_000])
@pytest.mark.parametrize("kind", [Rows, ArrayRows])
def test_batches_can_be_kept_over_the_epoch(loader_class, num_workers, size, kind):
    batches = list(loader_class(kind(24, size), batch_size=2, num_workers=num_workers))
    assert [batch[:, 0].tolist() for batch in batches] == [[2.0 * i, 2.0 * i + 1] for i in range(12)]
    assert all((batch == batch[:, :1]).all() for batch in batches)


def test_batches_can_be_kept_over_several_epochs(loader_class):
    loader = loader_class(Rows(8), batch_size=2, num_workers=2, persistent_workers=True)
    epochs = [list(loader) for _ in range(4)]
    for epoch in epochs:
        assert [batch[:, -1].tolist() for batch in epoch] == [[0, 1], [2, 3], [4, 5], [6, 7]]


def test_batches_outlive_the_loader_and_its_workers(loader_class):
    loader = loader_class(Rows(6), batch_size=2, num_workers=2)
    batches = list(loader)
    del loader
    assert [batch[:, 5].tolist() for batch in batches] == [[0, 1], [2, 3], [4, 5]]
    assert torch.stack(batches).sum() == 15 * 3000


def test_a_view_keeps_the_batch_alive(loader_class):
    views = [batch[1, 10:20] for batch in loader_class(Rows(20), batch_size=2, num_workers=2)]
    assert [view.tolist() for view in views] == [[2.0 * i + 1] * 10 for i in range(10)]


def test_an_array_of_a_batch_keeps_it_alive(loader_class):
    arrays = [batch.numpy() for batch in loader_class(Rows(20), batch_size=2, num_workers=2)]
    assert [array[:, 0].tolist() for array in arrays] == [[2.0 * i, 2.0 * i + 1] for i in range(10)]


@pytest.mark.parametrize("kind", [Rows, ArrayRows])
def test_batches_can_be_written_into(loader_class, num_workers, kind):
    batches = list(loader_class(kind(8), batch_size=2, num_workers=num_workers))
    for batch in batches:
        batch.mul_(2).add_(1)
        batch[0, 0] = -1
        batch.numpy()[0, 1] = -2
    assert [batch[:, 5].tolist() for batch in batches] == [[1, 3], [5, 7], [9, 11], [13, 15]]
    assert [batch[0, :2].tolist() for batch in batches] == [[-1, -2]] * 4


def test_writing_into_a_batch_changes_no_other_epoch(loader_class, num_workers):
    dataset = data.TensorDataset(torch.arange(8.0))
    loader = loader_class(dataset, batch_size=4, num_workers=num_workers)
    for _ in range(2):
        for (batch,) in loader:
            assert batch.sum() in (6, 22)
            batch.zero_()
    assert dataset.tensors[0].sum() == 28


def test_batches_are_contiguous(loader_class, num_workers):
    class Strided(Numbers):
        def __getitem__(self, index):
            return torch.arange(12).reshape(3, 4).t()[::2], np.arange(12).reshape(3, 4).T

    for one, two in loader_class(Strided(4), batch_size=2, num_workers=num_workers):
        assert one.is_contiguous()
        assert two.is_contiguous()
        assert one.storage_offset() == 0


@pytest.mark.parametrize("kind", [Rows, ArrayRows])
def test_batches_are_ordinary_tensors(loader_class, num_workers, kind):
    for batch in loader_class(kind(4), batch_size=2, num_workers=num_workers):
        assert type(batch) is torch.Tensor
        assert batch.is_leaf
        assert not batch.requires_grad
        assert batch.device.type == "cpu"
        assert batch.layout is torch.strided
        assert batch.untyped_storage().nbytes() == batch.nbytes


def test_only_torch_calls_its_shared_memory_shared(loader_class):
    """A difference (docs/migrate/torch.md): torch knows only its own files. ``share_memory_()`` works for both."""
    batches = list(loader_class(Rows(4), batch_size=2, num_workers=1))
    assert [batch.is_shared() for batch in batches] == [loader_class is data.DataLoader] * 2


def test_batches_can_be_moved_to_shared_memory(loader_class, num_workers):
    for position, batch in enumerate(loader_class(Rows(4), batch_size=2, num_workers=num_workers)):
        assert batch.share_memory_() is batch
        assert batch.is_shared()
        assert batch[:, 3].tolist() == [2.0 * position, 2.0 * position + 1]


def add_one(tensor, done):
    tensor.add_(1)
    done.set()


def test_batches_can_be_sent_to_another_process(loader_class, num_workers):
    (batch,) = loader_class(Rows(2), batch_size=2, num_workers=num_workers)
    batch.share_memory_()
    context = torch.multiprocessing.get_context("fork")
    done = context.Event()
    process = context.Process(target=add_one, args=(batch, done))
    process.start()
    process.join(60)
    assert done.is_set()
    assert batch[:, 0].tolist() == [1, 2]
    process.close()


def test_batches_can_be_pickled(loader_class, num_workers):
    (batch,) = loader_class(Rows(2), batch_size=2, num_workers=num_workers)
    assert_same(pickle.loads(pickle.dumps(batch)), batch)


def test_batches_can_be_saved(loader_class, num_workers, tmp_path):
    (batch,) = loader_class(Rows(2), batch_size=2, num_workers=num_workers)
    torch.save(batch, tmp_path / "batch")
    assert_same(torch.load(tmp_path / "batch", weights_only=True), batch)


def test_batches_can_require_grad(loader_class, num_workers):
    (batch,) = loader_class(Rows(2), batch_size=2, num_workers=num_workers)
    batch.requires_grad_()
    (batch * 3).sum().backward()
    assert batch.grad.unique().tolist() == [3]


def test_inline_batches_can_be_resized(loader_class):
    (batch,) = loader_class(Rows(2, 4), batch_size=2)
    assert batch.resize_(3, 4).shape == (3, 4)
    assert batch[:2, 0].tolist() == [0, 1]


def test_batches_from_workers_cannot_grow(loader_class):
    """They lie in memory that is shared, which has its size."""

    def run(kind):
        (batch,) = kind(Rows(2), batch_size=2, num_workers=1)
        try:
            return tuple(batch.resize_(30, 3000).shape)
        except RuntimeError:
            return RuntimeError

    assert run(loader_class) == run(data.DataLoader)


def test_views_out_of_the_dataset_do_not_drag_it_along(loader_class):
    class Views(Numbers):
        whole = torch.arange(1000.0)

        def __getitem__(self, index):
            return self.whole[index : index + 2]

    for batch in loader_class(Views(4), batch_size=2, num_workers=1):
        assert batch.untyped_storage().nbytes() == batch.nbytes


def pack(batch):
    return torch.nn.utils.rnn.pack_sequence(batch, enforce_sorted=False)


def test_a_packed_sequence_comes_from_a_collate_fn(loader_class, num_workers):
    samples = [torch.arange(3.0), torch.arange(5.0), torch.arange(1.0)]
    (batch,) = loader_class(Held(samples), batch_size=3, collate_fn=pack, num_workers=num_workers)
    assert_same(batch, pack(samples))
    unpacked, lengths = torch.nn.utils.rnn.pad_packed_sequence(batch, batch_first=True)
    assert lengths.tolist() == [3, 5, 1]
    assert unpacked[1].tolist() == [0, 1, 2, 3, 4]


@dataclass
class Batch:
    """A class of the user's for batches, which knows how to pin itself."""

    inputs: object
    targets: object

    def pin_memory(self):
        raise AssertionError("pinned without an accelerator")


def own_batch(samples):
    return Batch(torch.stack([a for a, _ in samples]), [b for _, b in samples])


@pytest.mark.filterwarnings("ignore:'pin_memory' argument:UserWarning")
@pytest.mark.parametrize("pin_memory", [False, True])
def test_a_batch_class_of_the_users(loader_class, num_workers, pin_memory):
    samples = [(torch.ones(2), "a"), (torch.zeros(2), "b")]
    (batch,) = loader_class(
        Held(samples), batch_size=2, collate_fn=own_batch, num_workers=num_workers, pin_memory=pin_memory
    )
    assert_same(batch, own_batch(samples))


RESULTS = {
    "a tuple": (torch.ones(2), 1),
    "a list": [torch.ones(2), [1, 2]],
    "a dict": {"a": torch.ones(2), 1: "x"},
    "a namedtuple": Point(torch.ones(2), np.ones(2)),
    "an array": np.arange(5000),
    "an array of objects": np.array([None, "a", 1], dtype=object),
    "a structured array": np.zeros(3, dtype=[("a", "i4"), ("b", "f8")]),
    "a tensor of a class": torch.ones(3).as_subclass(Own),
    "a parameter": torch.nn.Parameter(torch.ones(3)),
    "a tensor that requires grad": torch.ones(3, requires_grad=True),
    "a large tensor": torch.arange(200_000),
    "a transposed tensor": torch.arange(6).reshape(2, 3).t(),
    "an empty tensor": torch.zeros(0, 3),
    "a bfloat16 tensor": torch.ones(3, dtype=torch.bfloat16),
    "a float8 tensor": torch.ones(3).to(torch.float8_e4m3fn),
    "a boolean tensor": torch.tensor([True, False]),
    "a complex tensor": torch.tensor([1 + 2j]),
    "a size": torch.Size([1, 2]),
    "a dtype": torch.float16,
    "a device": torch.device("cpu"),
    "an exception class": KeyError,
    "nothing": None,
    "a long text": "x" * 100_000,
    "long bytes": b"x" * 100_000,
}


@pytest.mark.parametrize("name", RESULTS)
def test_what_a_collate_fn_returns_arrives_unchanged(loader_class, num_workers, name):
    result = RESULTS[name]
    (found,) = loader_class(Numbers(1), collate_fn=lambda batch: result, num_workers=num_workers)
    assert_same(found, result)


def test_a_tensor_that_is_twice_in_a_batch(loader_class, num_workers):
    def twice(batch):
        tensor = torch.ones(3000)
        return tensor, tensor

    ((one, two),) = loader_class(Numbers(1), collate_fn=twice, num_workers=num_workers)
    one.zero_()
    is_one = num_workers == 0 or loader_class is data.DataLoader  # a difference: docs/migrate/torch.md
    assert two.sum() == (0 if is_one else 3000)


def test_a_stream_of_ready_batches(loader_class, num_workers):
    class Ready(data.IterableDataset):
        def __iter__(self):
            for number in range(3):
                yield torch.full((4, 3000), number), {"y": np.full(4, number)}

    batches = list(loader_class(Ready(), batch_size=None, num_workers=num_workers))
    assert [int(x[0, 0]) for x, _ in batches] == [n for n in range(3) for _ in range(max(1, num_workers))]
    assert all(type(y["y"]) is torch.Tensor for _, y in batches)


def test_lists_of_python_objects_arrive(loader_class, num_workers):
    samples = [{"text": "a" * 50, "ids": list(range(20)), "pair": (None, 1.5)} for _ in range(20)]
    loader = loader_class(Held(samples), batch_size=10, collate_fn=identity, num_workers=num_workers)
    assert_same(list(loader), [samples[:10], samples[10:]])


def test_batches_of_streams_can_be_kept(loader_class):
    batches = list(loader_class(Stream(200), batch_size=50, num_workers=1))
    assert [batch.tolist() for batch in batches] == [list(range(i, i + 50)) for i in range(0, 200, 50)]
