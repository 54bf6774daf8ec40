"""What is read: so far datasets with an index. Imports nothing else of ours."""

from stoker.sources.indexed import Fetched, Indexed, IndexedSource, SampleError

__all__ = ["Fetched", "Indexed", "IndexedSource", "SampleError"]
