"""What is read: datasets with an index, items, and files. Imports only the plan."""

from stoker.sources.indexed import Fetched, Indexed, IndexedSource, SampleError
from stoker.sources.items import ENDLESS, Items, ItemSource, Seeded, Work

__all__ = ["ENDLESS", "Fetched", "Indexed", "IndexedSource", "ItemSource", "Items", "SampleError", "Seeded", "Work"]
