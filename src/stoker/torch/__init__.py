"""A drop-in for ``torch.utils.data.DataLoader``: change the import, and nothing else.

    from stoker.torch import DataLoader

Uses the public face of Stoker alone, and torch.
"""

from stoker.torch.loader import DataLoader

__all__ = ["DataLoader"]
