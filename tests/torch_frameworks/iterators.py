"""Which iterators the loaders of a process make: torch's, torchdata's and ours begin with the same constructor."""

from __future__ import annotations

from torch.utils.data.dataloader import _BaseDataLoaderIter


def noting(types):
    """A constructor that also appends to ``types``; to be set as that of torch's iterators."""
    begin = _BaseDataLoaderIter.__init__

    def noted(self, *args, **kwargs):
        types.append(type(self))
        begin(self, *args, **kwargs)

    return noted
