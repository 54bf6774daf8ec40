"""tinyloader's interface, on ``stoker.stream``. See docs/migrate/tinyloader.md."""

from stoker.compat.tinyloader.loader import Loader, SharedMemoryShim, load, load_with_workers

__all__ = ["Loader", "SharedMemoryShim", "load", "load_with_workers"]
