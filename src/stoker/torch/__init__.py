"""A drop-in for ``torch.utils.data.DataLoader``: change the import, and nothing else.

    from stoker.torch import DataLoader

Uses the public face of Stoker alone, and torch.
"""

from stoker.torch.adoption import adopt

try:
    import torch  # noqa: F401
except ImportError as error:
    raise ImportError("stoker.torch needs torch: pip install 'stoker[torch]'") from error

from stoker.torch.loader import DataLoader
from stoker.torch.trainer import TrainerMixin

__all__ = ["DataLoader", "TrainerMixin", "adopt"]
