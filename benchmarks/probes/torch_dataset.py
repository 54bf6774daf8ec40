"""A dataset whose module imports torch, as most people's do."""

from __future__ import annotations

import torch


class WithTorch:
    def __len__(self) -> int:
        return 6400

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.full((256,), float(index))
