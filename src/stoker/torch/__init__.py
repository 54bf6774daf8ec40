"""A drop-in for ``torch.utils.data.DataLoader``: change the import, and nothing else.

    from stoker.torch import DataLoader

Uses the public face of Stoker alone, and torch.
"""

try:
    from stoker.torch.adoption import adopt
    from stoker.torch.batch_sampler import BatchSampler
    from stoker.torch.loader import DataLoader
    from stoker.torch.trainer import TrainerMixin
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ImportError("stoker.torch needs torch: pip install 'stoker[torch]'") from error

__all__ = ["BatchSampler", "DataLoader", "TrainerMixin", "adopt"]
