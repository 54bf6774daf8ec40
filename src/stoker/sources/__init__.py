"""What is read: datasets with an index, items, and files. Imports only the plan."""

from stoker.sources.indexed import Fetched, Indexed, IndexedSource, SampleError
from stoker.sources.items import ItemSource, Seeded, Work
from stoker.sources.kinds import is_chunks

__all__ = ["Fetched", "Indexed", "IndexedSource", "ItemSource", "SampleError", "Seeded", "Work", "is_chunks"]
