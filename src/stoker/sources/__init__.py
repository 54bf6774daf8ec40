"""What is read: so far datasets with an index. Imports ``errors`` and ``plan``."""

from stoker.sources.indexed import Fetched, Indexed, IndexedSource, SampleError

__all__ = ["Fetched", "Indexed", "IndexedSource", "SampleError"]
