"""dataset_server's signature and settings, on ``stoker.Loader``. See docs/migrate/dataset_server.md."""

from stoker.compat.dataset_server.loader import DataLoader

__all__ = ["DataLoader"]
