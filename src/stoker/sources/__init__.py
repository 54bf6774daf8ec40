"""What is read: datasets with an index, items, and files. Imports only the plan."""

from stoker.sources.dataset import Dataset
from stoker.sources.indexed import Fetched, Indexed, IndexedSource, IsInterrupt, SampleError
from stoker.sources.items import ItemSource, Seeded, Work
from stoker.sources.kinds import is_chunks, is_mix
from stoker.sources.mix import Mix, checked_weights
from stoker.sources.retry import Retry, checked_retry
from stoker.sources.slow_samples import WORTH_A_LOOK_NS, SlowSamples

__all__ = [
    "WORTH_A_LOOK_NS",
    "Dataset",
    "Fetched",
    "Indexed",
    "IndexedSource",
    "IsInterrupt",
    "ItemSource",
    "Mix",
    "Retry",
    "SampleError",
    "Seeded",
    "SlowSamples",
    "Work",
    "checked_retry",
    "checked_weights",
    "is_chunks",
    "is_mix",
]
