"""The workloads of the drop-in for torch's `DataLoader`: workloads and forms that torch gets as well, and a few more.

All contenders are given the same arguments, and what comes out are torch's tensors, or what a collate function makes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks import contents, samples
from benchmarks.forms import FORMS
from benchmarks.workloads import DROP_IN, DROP_IN_CONTENDERS, TORCH, WORKLOADS, Workload

_BIG, _PAIRS, _NO_WORKERS = WORKLOADS["big"], FORMS["kept_tensor"], FORMS["inline"]
_LENGTH = _PAIRS.batches * _PAIRS.batch_size
_BESIDE_TORCH = (DROP_IN, TORCH)


def _held(base: Workload, name: str, title: str, least: float, **instead: Any) -> Workload:
    """A workload in which the drop-in is to be `least` times as fast as whoever takes part."""
    contenders = instead.get("contenders", DROP_IN_CONTENDERS)
    of_stateful = None if contenders == _BESIDE_TORCH else least
    fields = {"contenders": contenders, "least_of_torch": least, "least_of_stateful": of_stateful, "ours": DROP_IN}
    return replace(base, name=f"drop_in_{name}", title=title, least_of_limit=None, **fields | instead)


def _of(form: type[samples.Form], length: int = _LENGTH) -> Callable[[Path], Any]:
    return lambda _: form(length)


def _iterable(make: Callable[[], Any]) -> Callable[[Path], Any]:
    def make_dataset(_: Path) -> Any:
        from benchmarks.iterables import Kept

        return Kept(make(), _LENGTH)

    return make_dataset


def _with_fabric(loader: Any) -> Any:
    from lightning_fabric import Fabric

    return Fabric(accelerator="cpu", devices=1).setup_dataloaders(loader)


def _with_accelerate(loader: Any) -> Any:
    """As the documentation says for the drop-in: Accelerate makes torch's loader of any, which is then adopted."""
    from accelerate import Accelerator

    from stoker.torch import DataLoader, adopt

    prepared = Accelerator(cpu=True).prepare(loader)
    return adopt(prepared) if isinstance(loader, DataLoader) else prepared


DROP_INS: dict[str, Workload] = {
    workload.name: workload
    for workload in (
        _held(_BIG, "arrays", "64 arrays of (3,224,224) float32", 5.0),
        _held(_BIG, "tensors", "64 tensors of (3,224,224) float32", 5.0,
              make=_of(samples.BigTensorForm, _BIG.batches * _BIG.batch_size)),
        _held(_PAIRS, "pairs", "256 × (tensor of 1 KB, int) out of a list", 10.0),
        _held(_PAIRS, "tokens", "32 × dict of 3 tensors of 128 tokens", 10.0, make=_of(samples.EncodingsForm),
              batch_size=32, batches=_LENGTH // 32, batch_bytes=32 * 3 * 1024),
        _held(_PAIRS, "tokens_256", "256 × dict of 3 tensors of 128 tokens", 10.0, make=_of(samples.EncodingsForm),
              batch_bytes=256 * 3 * 1024),
        _held(FORMS["tensor_dataset"], "tensor_dataset", "TensorDataset of 1 KB and a label, shuffled", 4.0),
        _held(FORMS["hf_torch"], "hf", "HF datasets in torch's format", 1.5),
        _held(WORKLOADS["decode"], "jpeg", "32 JPEGs with Pillow", 1.2),
        _held(_PAIRS, "iterable", "IterableDataset of tensors of 1 KB", 6.0, make=_iterable(contents.kept_tensors)),
        _held(_PAIRS, "iterable_arrays", "IterableDataset of arrays of 1 KB", 6.0, make=_iterable(contents.kept_rows)),
        _held(FORMS["ragged"], "pad", "(array of 500 to 1024, int), collate_fn with pad_sequence", 1.0),
        _held(_PAIRS, "stack", "(tensor, int), collate_fn with torch.stack", 1.0, make=_of(samples.StackedForm)),
        _held(_PAIRS, "filter", "(tensor, int), collate_fn that calls default_collate", 1.0,
              make=_of(samples.WithoutMissingForm)),
        _held(FORMS["strings"], "strings", "dicts of strings, collate_fn=lambda s: s", 1.0),
        _held(FORMS["images"], "images", "(PIL image, int), collate_fn=lambda s: s", 1.0),
        _held(FORMS["objects"], "objects", "objects of one's own, collate_fn=lambda s: s", 1.0),
        _held(_NO_WORKERS, "inline", "(tensor, int) out of a list, num_workers=0", 1.0, contenders=_BESIDE_TORCH,
              make=_of(samples.KeptTensorForm)),
        _held(_NO_WORKERS, "inline_arrays", "(array, int), num_workers=0", 1.0, contenders=_BESIDE_TORCH),
        _held(_PAIRS, "fabric", "pairs, set up by Lightning Fabric", 10.0, through=_with_fabric),
        # Of torchdata's, too, Accelerate makes torch's.
        _held(_PAIRS, "accelerate", "pairs, prepared by Accelerate", 10.0, through=_with_accelerate,
              contenders=_BESIDE_TORCH),
    )
}  # fmt: skip
