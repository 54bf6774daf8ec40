"""Tensors are kept as tensors. Tested last: once torch is there, each look for garbage takes ten times as long."""

from __future__ import annotations

import msgspec
import pytest

from stoker import Cache, Inline, Loader, Processes, Threads
from stoker.stores.fingerprint import describe
from tests.stores.test_record_codec import CODECS, leaf, read_back, read_crafted


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("copies", [False, True])
def test_tensors_come_back_as_tensors(codec, copies):
    torch = pytest.importorskip("torch")
    names = ["bool", "uint8", "int16", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "float8_e5m2"]
    base = torch.arange(12).reshape(3, 4)
    sample = {name: (base % 3).to(getattr(torch, name)) for name in names}
    sample |= {
        "transposed": base.T,
        "every other": base[:, ::2],
        "no dimension": torch.tensor(1.5),
        "empty": torch.zeros(0, 3),
        "learning": torch.ones(2, requires_grad=True),
        "conjugate": torch.tensor([1 + 2j]).conj(),
    }
    found = read_back(sample, codec, copies=copies)
    assert {name: (type(value), value.dtype, value.shape) for name, value in found.items()} == {
        name: (type(value), value.dtype, value.shape) for name, value in sample.items()
    }
    for name, value in sample.items():
        assert torch.equal(found[name].detach(), value.detach()) or value.dtype == torch.float8_e5m2, name
    assert torch.equal(found["float8_e5m2"].view(torch.uint8), sample["float8_e5m2"].view(torch.uint8))


@pytest.mark.parametrize("workers", [Inline(), Threads(3), Processes(3)], ids=repr)
def test_tensors_stay_tensors(workers, path):
    torch = pytest.importorskip("torch")
    dataset = torch.utils.data.TensorDataset(torch.arange(12.0).reshape(6, 2), torch.arange(6))
    with Loader(dataset, 3, workers=workers, cache=Cache(path)) as loader:
        for _ in range(2):
            (first, labels), (second, _) = list(loader)
            assert torch.equal(torch.cat([first, second]), dataset.tensors[0])
            assert labels.tolist() == [0, 1, 2]


def test_tensors_are_known_by_their_contents():
    torch = pytest.importorskip("torch")
    data = torch.arange(6)
    assert describe(torch.utils.data.TensorDataset(data)) == describe(torch.utils.data.TensorDataset(data.clone()))
    others = [data, data + 1, data.float(), data.reshape(2, 3)]
    assert len({describe(torch.utils.data.TensorDataset(other)) for other in others}) == len(others)
    whole = torch.utils.data.TensorDataset(data)
    assert describe(torch.utils.data.Subset(whole, [1, 2])) != describe(torch.utils.data.Subset(whole, [1, 3]))


@pytest.mark.parametrize("name", ["load", "os.system", "float31", "int32"])
def test_a_forged_type_of_torch_is_an_error_and_no_more(name):
    """The last one is a type, but of another size than the array."""
    pytest.importorskip("torch")
    with pytest.raises(ValueError):
        read_crafted(msgspec.msgpack.encode([None, [leaf(tensor=name)], 8]), arrays=bytes(8))
