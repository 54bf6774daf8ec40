"""The workloads of the forms of samples: the same kilobyte, alone, in tuples and dicts, as tensors, beside texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import contents, samples
from benchmarks.workloads import (
    FORM_CONTENDERS,
    GRAIN,
    LIMIT,
    SPDL,
    SPDL_PROCESSES,
    STOKER,
    STOKER_THREADS,
    TORCH,
    Workload,
)

_LENGTH = 256 * 400
_FEW = 256 * 40  # where samples are slow to come: an epoch is the warm-up


def _tensor_dataset(_: Path) -> Any:
    import torch
    from torch.utils.data import TensorDataset

    rows = torch.from_numpy(np.random.default_rng(0).integers(0, 255, size=(_LENGTH, 1024), dtype=np.uint8))
    return TensorDataset(rows, torch.arange(_LENGTH))


def _hf(_: Path) -> Any:
    import datasets

    columns = {"text": (contents.texts() * 3)[:_FEW], "label": list(range(_FEW))}
    return datasets.Dataset.from_dict(columns)


def _hf_tensors(_: Path) -> Any:
    import datasets

    rows = np.random.default_rng(0).random((_FEW, 64), dtype=np.float32)
    found: Any = datasets.Dataset.from_dict({"x": rows, "y": np.arange(_FEW)})
    return found.with_format("torch")


_OBJECTS = (STOKER, STOKER_THREADS, TORCH, SPDL, SPDL_PROCESSES)  # where most of the time goes into pickling
_ALL = tuple(name for name in FORM_CONTENDERS if name != STOKER_THREADS)
_NO_LIMIT = tuple(name for name in _ALL if name != LIMIT)  # where it would be a loader itself, or says nothing
_REFUSED = (STOKER, GRAIN, LIMIT)  # by default_collate, on which SPDL relies as well
_NOT_BY_GRAIN = (STOKER, TORCH, SPDL, SPDL_PROCESSES)
_INLINE = (STOKER, TORCH)


def _form(
    name: str, title: str, form: type[samples.Form], of_torch: float | None, of_limit: float | None = None,
    contenders: tuple[str, ...] = _ALL, *, batch_size: int = 256, workers: int = 2, length: int = _LENGTH,
) -> Workload:  # fmt: skip
    return Workload(
        name, title, lambda _: form(length), batch_size, length // batch_size, batch_size * 1024, "samples/s",
        contenders, workers=workers, least_of_torch=of_torch, least_of_limit=of_limit,
    )  # fmt: skip


FORMS: dict[str, Workload] = {
    workload.name: workload
    for workload in (
        _form("array", "array", samples.ArrayForm, 17.0, 0.7),
        _form("tuple", "(array, int)", samples.PairForm, 14.0, 0.7),
        _form("list", "[array, int]", samples.ListForm, 14.0, 0.7),
        _form("dict", '{"x": array, "y": int}', samples.DictForm, 14.0, 0.7),
        _form("namedtuple", "namedtuple of array, int", samples.NamedtupleForm, 14.0, 0.7),
        _form("dataclass", "dataclass of array, int", samples.DataclassForm, None, 0.7, _REFUSED),
        _form("tensor", "(tensor, int)", samples.TensorForm, 12.0, 0.7),
        _form("kept_tensor", "(tensor, int) out of a list", samples.KeptTensorForm, 12.0, 0.6),
        _form("tensors", '{"x": tensor, "y": tensor}', samples.TensorsForm, 12.0, 0.7),
        _form("nested", "nested dict of array, text, int", samples.NestedForm, 12.0),
        _form("floats", "20 floats in a dict", samples.FloatsForm, 10.0),
        _form("leaves", "50 arrays of 4 floats in a dict", samples.LeavesForm, 5.0, length=256 * 160),
        _form("text", "(text, int)", samples.TextForm, 8.0),
        _form("bytes", "(bytes, int)", samples.BytesForm, 1.2),
        _form("ints", "(list of 32 ints, int)", samples.IntsForm, 5.0, None, _NO_LIMIT),
        _form("np_int", "(array, np.int64)", samples.NumpyIntForm, 10.0),
        _form("no_axes", "(array, 0-d array)", samples.NoAxesForm, 10.0),
        _form("ragged", "(array of 500 to 1024, int), padded", samples.RaggedForm, 5.0, None,
              _NOT_BY_GRAIN),
        Workload("tensor_dataset", "TensorDataset of 1 KB and a label, shuffled", _tensor_dataset, 256,
                 _LENGTH // 256, 256 * 1024, "samples/s", _NO_LIMIT, shuffle=True, least_of_torch=5.0),
        _form("strings", "dicts of strings, collate=lambda s: s", samples.StringsForm, 1.2, None,
              (*_OBJECTS, GRAIN)),
        _form("images", "(PIL image, int), collate=lambda s: s", samples.ImagesForm, 1.0, None, _OBJECTS),
        _form("objects", "objects of one's own, collate=lambda s: s", samples.ObjectsForm, 1.0, None, _OBJECTS),
        Workload("hf", "rows of HF datasets: text, label", _hf, 256, _FEW // 256, 256 * 160, "samples/s",
                 _NOT_BY_GRAIN, least_of_torch=1.0),
        Workload("hf_torch", "rows of HF datasets in torch's format", _hf_tensors, 256, _FEW // 256, 256 * 264,
                 "samples/s", _NOT_BY_GRAIN, least_of_torch=1.0),
        _form("batch_4096", "(array, int), 4096 a batch", samples.PairForm, 8.0, 0.7, batch_size=4096),
        _form("batch_1", "(array, int), 1 a batch", samples.PairForm, 4.0, None, _NO_LIMIT, batch_size=1,
              length=_FEW),
        _form("inline", "(array, int), no workers", samples.PairForm, 3.0, None, _INLINE, workers=0),
    )
}  # fmt: skip
